-- The first schema. Numbers are 64-bit integers, ids and hashes are blobs of
-- fixed size, times are Unix milliseconds. A room is named by its number n
-- everywhere but in its own row: 16 bytes less in each of millions of entries.

CREATE TABLE settings (
    key   text PRIMARY KEY,
    value bytea NOT NULL
);

CREATE TABLE rooms (
    n           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          bytea NOT NULL UNIQUE,
    epoch       bigint NOT NULL,
    next_seq    bigint NOT NULL,
    first_seq   bigint NOT NULL,
    kind        bigint NOT NULL,
    status      bigint NOT NULL,
    incarnation bigint NOT NULL DEFAULT 0,
    successor   bytea,
    created_ms  bigint NOT NULL,
    changed_ms  bigint NOT NULL,
    held        bigint NOT NULL DEFAULT 0, -- proposals: 0 saves most appends a look
    first_ms    bigint -- accepted_ms of the oldest kept entry; NULL = the log is empty
) WITH (fillfactor = 50); -- room beside each row for its next versions: each append makes one
CREATE INDEX rooms_by_first ON rooms (first_ms) WHERE first_ms IS NOT NULL;

-- The key names the time of acceptance too, so that the table can become one
-- partitioned by months, whose old parts are dropped whole, without a change to
-- any statement. That (room, seq) is unique the lock on the room's row holds.
-- Ciphertext does not compress.
CREATE TABLE log (
    room        bigint NOT NULL,
    seq         bigint NOT NULL,
    epoch       bigint NOT NULL,
    kind        bigint NOT NULL,
    accepted_ms bigint NOT NULL,
    bytes       bytea NOT NULL,
    PRIMARY KEY (room, seq, accepted_ms)
);
ALTER TABLE log ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- key = the first 16 bytes of SHA-256(device id, entry hash): who sent an entry
-- is not kept in the clear.
CREATE TABLE seen (
    room        bigint NOT NULL,
    key         bytea NOT NULL,
    seq         bigint NOT NULL,
    epoch       bigint NOT NULL, -- the room's epoch after the entry
    accepted_ms bigint NOT NULL,
    PRIMARY KEY (room, key)
);

CREATE TABLE proposals (
    n        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    room     bigint NOT NULL,
    ref      bytea NOT NULL,
    seq      bigint NOT NULL,
    epoch    bigint NOT NULL,
    proposer bigint NOT NULL,
    must     boolean NOT NULL,
    bytes    bytea NOT NULL,
    UNIQUE (room, ref)
);

-- A follower's state at an epoch is the nearest base at or below it and the
-- deltas between; a delta's epoch is the one it leads to.
CREATE TABLE bases (
    n     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    room  bigint NOT NULL,
    epoch bigint NOT NULL,
    state bytea NOT NULL,
    UNIQUE (room, epoch)
);
CREATE TABLE deltas (
    n     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    room  bigint NOT NULL,
    epoch bigint NOT NULL,
    delta bytea NOT NULL,
    UNIQUE (room, epoch)
);
CREATE TABLE group_infos (
    n     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    room  bigint NOT NULL,
    epoch bigint NOT NULL,
    bytes bytea NOT NULL,
    UNIQUE (room, epoch)
);

CREATE TABLE memberships (
    room      bigint NOT NULL,
    device    bytea NOT NULL,
    from_seq  bigint NOT NULL,
    until_seq bigint NOT NULL, -- 0 = a member now
    identity  bytea NOT NULL,
    leaf      bigint NOT NULL,
    PRIMARY KEY (room, device, from_seq)
);
CREATE UNIQUE INDEX memberships_now ON memberships (device, room) WHERE until_seq = 0;
CREATE INDEX memberships_of_identity ON memberships (identity, room) WHERE until_seq = 0;
CREATE INDEX memberships_of_room ON memberships (room, leaf) WHERE until_seq = 0;

CREATE TABLE welcomes (
    n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    room       bigint NOT NULL,
    epoch      bigint NOT NULL,
    created_ms bigint NOT NULL,
    bytes      bytea NOT NULL,
    UNIQUE (room, epoch)
);
-- Who has not acknowledged yet. A row goes with its acknowledgement.
CREATE TABLE joiners (
    n         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    room      bigint NOT NULL,
    epoch     bigint NOT NULL,
    device    bytea NOT NULL,
    ref       bytea NOT NULL,
    start_seq bigint NOT NULL,
    relayed   boolean NOT NULL DEFAULT false,
    UNIQUE (room, epoch, device)
);
CREATE INDEX joiners_owed ON joiners (n) WHERE NOT relayed;

-- Which identities could not process the commit that led to the room's epoch.
CREATE TABLE reports (
    room     bigint NOT NULL,
    identity bytea NOT NULL,
    PRIMARY KEY (room, identity)
);

CREATE TABLE devices (
    n           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          bytea NOT NULL UNIQUE,
    identity    bytea NOT NULL,
    key         bytea NOT NULL UNIQUE,
    role        bigint NOT NULL,
    version     bigint NOT NULL,
    credential  bytea NOT NULL,
    enrolled_ms bigint NOT NULL,
    seen_ms     bigint NOT NULL,
    counter     bytea,                        -- NULL = unset
    next_mail   bigint NOT NULL DEFAULT 1   -- ids are never given twice
);
CREATE INDEX devices_of_identity ON devices (identity);

CREATE TABLE sessions (
    token      bytea PRIMARY KEY,
    device     bytea NOT NULL,
    expires_ms bigint NOT NULL
);
CREATE INDEX sessions_of_device ON sessions (device);
CREATE INDEX sessions_by_end ON sessions (expires_ms);

CREATE TABLE revocations (
    n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    identity   bytea NOT NULL,
    device     bytea NOT NULL,
    bytes      bytea NOT NULL,
    revoked_ms bigint NOT NULL,
    UNIQUE (identity, device) -- anybody can sign one that names somebody else's device
);

CREATE TABLE nonces (
    key        bytea NOT NULL,
    nonce      bytea NOT NULL,
    expires_ms bigint NOT NULL,
    PRIMARY KEY (key, nonce)
);
CREATE INDEX nonces_by_end ON nonces (expires_ms);

CREATE TABLE snapshots (
    identity bytea PRIMARY KEY,
    version  bigint NOT NULL,
    sealed   bytea NOT NULL
);

CREATE TABLE archive (
    n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    identity   bytea NOT NULL,
    name       bytea NOT NULL,
    size       bigint NOT NULL,
    created_ms bigint NOT NULL,
    sealed     bytea NOT NULL,
    UNIQUE (identity, name)
);
CREATE INDEX archive_by_age ON archive (created_ms);

CREATE TABLE wrapped_keys (
    device     bytea NOT NULL,
    generation bigint NOT NULL,
    wrapped    bytea NOT NULL,
    PRIMARY KEY (device, generation)
);

-- A package that was handed out keeps its row without the bytes: whose it was
-- must be known until it expires, and its ref must not come in again.
CREATE TABLE key_packages (
    n            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ref          bytea NOT NULL UNIQUE,
    device       bytea NOT NULL,
    identity     bytea NOT NULL,
    suite        bigint NOT NULL,
    not_after_ms bigint NOT NULL,
    last_resort  boolean NOT NULL,
    claimed      boolean NOT NULL DEFAULT false,
    bytes        bytea NOT NULL
);
CREATE INDEX key_packages_left ON key_packages (identity, suite, device, last_resort, n) WHERE NOT claimed;
CREATE INDEX key_packages_of_device ON key_packages (device, suite);
CREATE INDEX key_packages_by_end ON key_packages (not_after_ms);

CREATE TABLE mail (
    device     bytea NOT NULL,
    id         bigint NOT NULL,
    kind       bigint NOT NULL,
    room       bytea NOT NULL,
    epoch      bigint NOT NULL,
    start_seq  bigint NOT NULL,
    payload    bytea NOT NULL,
    created_ms bigint NOT NULL,
    key        text COLLATE "C",                       -- NULL = none
    acked      boolean NOT NULL DEFAULT false, -- kept for its key only
    PRIMARY KEY (device, id)
);
CREATE UNIQUE INDEX mail_by_key ON mail (device, key) WHERE key IS NOT NULL;
CREATE INDEX mail_done ON mail (created_ms) WHERE acked;

CREATE TABLE blobs (
    id         bytea PRIMARY KEY,
    owner      bytea NOT NULL,
    size       bigint NOT NULL,
    received   bigint NOT NULL,
    created_ms bigint NOT NULL,
    refs       bigint NOT NULL DEFAULT 0, -- rows in blob_refs
    dead       boolean NOT NULL DEFAULT false  -- its bytes are to be deleted, then the row
);
CREATE INDEX blobs_of_owner ON blobs (owner) WHERE refs = 0 AND NOT dead;
CREATE INDEX blobs_loose ON blobs (created_ms) WHERE refs = 0 AND NOT dead;
CREATE INDEX blobs_dead ON blobs (id) WHERE dead;
CREATE TABLE blob_refs (
    room bigint NOT NULL,
    seq  bigint NOT NULL,
    blob bytea NOT NULL,
    PRIMARY KEY (room, seq, blob)
);
CREATE INDEX blob_refs_of_blob ON blob_refs (blob, room);

CREATE TABLE profiles (
    identity bytea PRIMARY KEY,
    username text COLLATE "C" UNIQUE, -- NULL = none
    record   bytea NOT NULL,
    version  bigint NOT NULL,
    put_ms   bigint NOT NULL
);

CREATE TABLE listings (
    room      bytea PRIMARY KEY,
    title     text NOT NULL,
    about     text NOT NULL,
    folded    text NOT NULL, -- title and description in lower case, for the search
    members   bigint NOT NULL,
    listed_ms bigint NOT NULL,
    listed_by bytea NOT NULL,
    picture   bytea
);
CREATE INDEX listings_by_age ON listings (listed_ms DESC, room);
