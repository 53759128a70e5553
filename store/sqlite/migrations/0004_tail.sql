-- An append writes its entry alone; where it stands is written for many at once
-- (tail.go). Entries up to placed.upto have their row in places and, with a key,
-- in seen, and are counted in their room's next_seq; those behind may have.
CREATE TABLE places (
    room INTEGER NOT NULL,
    seq  INTEGER NOT NULL,
    at   INTEGER NOT NULL,
    PRIMARY KEY (room, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO places(room, seq, at) SELECT room, seq, at FROM log ORDER BY room, seq;
DROP INDEX log_by_seq;
ALTER TABLE log ADD COLUMN key BLOB; -- as in seen; NULL = a marker, or placed before this column was
CREATE TABLE placed (upto INTEGER NOT NULL) STRICT;
INSERT INTO placed(upto) SELECT coalesce(max(at), 0) FROM log;
