-- The least that an ordered, deduplicated, durable append can be in SQL: one
-- call for each, all plans cached in the session. Run against an empty schema.
CREATE TABLE rooms (n bigint PRIMARY KEY, next_seq bigint NOT NULL) WITH (fillfactor = 50);
CREATE TABLE log (
    room bigint NOT NULL, seq bigint NOT NULL, epoch bigint NOT NULL, kind bigint NOT NULL, accepted_ms bigint NOT NULL, bytes bytea NOT NULL,
    PRIMARY KEY (room, seq)
);
ALTER TABLE log ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE TABLE seen (room bigint NOT NULL, key bytea NOT NULL, seq bigint NOT NULL, PRIMARY KEY (room, key));
INSERT INTO rooms SELECT n, 1 FROM generate_series(1, 2000) n;

CREATE FUNCTION append(in_room bigint, in_key bytea, in_bytes bytea) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    got bigint;
BEGIN
    SELECT seq INTO got FROM seen WHERE room = in_room AND key = in_key;
    IF FOUND THEN
        RETURN got;
    END IF;
    UPDATE rooms SET next_seq = next_seq + 1 WHERE n = in_room RETURNING next_seq - 1 INTO got;
    INSERT INTO log VALUES (in_room, got, 0, 1, 1790000000000, in_bytes);
    INSERT INTO seen VALUES (in_room, in_key, got);
    RETURN got;
END
$$;

-- One sequence bump and one insert, without a dedupe row.
CREATE FUNCTION bump_and_insert(in_room bigint, in_bytes bytea) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    got bigint;
BEGIN
    UPDATE rooms SET next_seq = next_seq + 1 WHERE n = in_room RETURNING next_seq - 1 INTO got;
    INSERT INTO log VALUES (in_room, got, 0, 1, 1790000000000, in_bytes);
    RETURN got;
END
$$;
