-- The first schema. Numbers are 64-bit integers, ids and hashes are blobs of
-- fixed size, times are Unix milliseconds. A room is named by its number n
-- everywhere but in its own row: 16 bytes less in each of millions of entries.

CREATE TABLE settings (
    key   TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE rooms (
    n           INTEGER PRIMARY KEY,
    id          BLOB NOT NULL UNIQUE,
    epoch       INTEGER NOT NULL,
    next_seq    INTEGER NOT NULL,
    first_seq   INTEGER NOT NULL,
    kind        INTEGER NOT NULL,
    status      INTEGER NOT NULL,
    incarnation INTEGER NOT NULL DEFAULT 0,
    successor   BLOB,
    created_ms  INTEGER NOT NULL,
    changed_ms  INTEGER NOT NULL,
    first_ms    INTEGER -- accepted_ms of the oldest kept entry; NULL = the log is empty
) STRICT;
CREATE INDEX rooms_by_first ON rooms (first_ms) WHERE first_ms IS NOT NULL;

-- Entries stand in the order of their commits, so a commit of 64 appends fills
-- ten pages at the end of the table instead of touching 64: measured a third
-- faster than clustering by (room, seq), which the index gives the readers.
CREATE TABLE log (
    at          INTEGER PRIMARY KEY,
    room        INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    epoch       INTEGER NOT NULL,
    kind        INTEGER NOT NULL,
    accepted_ms INTEGER NOT NULL,
    bytes       BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX log_by_seq ON log (room, seq);

-- key = the first 16 bytes of SHA-256(device id, entry hash): who sent an entry
-- is not kept in the clear.
CREATE TABLE seen (
    room        INTEGER NOT NULL,
    key         BLOB NOT NULL,
    seq         INTEGER NOT NULL,
    epoch       INTEGER NOT NULL, -- the room's epoch after the entry
    accepted_ms INTEGER NOT NULL,
    PRIMARY KEY (room, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE proposals (
    n        INTEGER PRIMARY KEY,
    room     INTEGER NOT NULL,
    ref      BLOB NOT NULL,
    seq      INTEGER NOT NULL,
    epoch    INTEGER NOT NULL,
    proposer INTEGER NOT NULL,
    must     INTEGER NOT NULL,
    bytes    BLOB NOT NULL,
    UNIQUE (room, ref)
) STRICT;

-- A follower's state at an epoch is the nearest base at or below it and the
-- deltas between; a delta's epoch is the one it leads to.
CREATE TABLE bases (
    n     INTEGER PRIMARY KEY,
    room  INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    state BLOB NOT NULL,
    UNIQUE (room, epoch)
) STRICT;
CREATE TABLE deltas (
    n     INTEGER PRIMARY KEY,
    room  INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    delta BLOB NOT NULL,
    UNIQUE (room, epoch)
) STRICT;
CREATE TABLE group_infos (
    n     INTEGER PRIMARY KEY,
    room  INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    UNIQUE (room, epoch)
) STRICT;

CREATE TABLE memberships (
    room      INTEGER NOT NULL,
    device    BLOB NOT NULL,
    from_seq  INTEGER NOT NULL,
    until_seq INTEGER NOT NULL, -- 0 = a member now
    identity  BLOB NOT NULL,
    leaf      INTEGER NOT NULL,
    PRIMARY KEY (room, device, from_seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX memberships_now ON memberships (device, room) WHERE until_seq = 0;
CREATE INDEX memberships_of_identity ON memberships (identity, room) WHERE until_seq = 0;
CREATE INDEX memberships_of_room ON memberships (room, leaf) WHERE until_seq = 0;

CREATE TABLE welcomes (
    n          INTEGER PRIMARY KEY,
    room       INTEGER NOT NULL,
    epoch      INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    bytes      BLOB NOT NULL,
    UNIQUE (room, epoch)
) STRICT;
-- Who has not acknowledged yet. A row goes with its acknowledgement.
CREATE TABLE joiners (
    n         INTEGER PRIMARY KEY,
    room      INTEGER NOT NULL,
    epoch     INTEGER NOT NULL,
    device    BLOB NOT NULL,
    ref       BLOB NOT NULL,
    start_seq INTEGER NOT NULL,
    relayed   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (room, epoch, device)
) STRICT;
CREATE INDEX joiners_owed ON joiners (n) WHERE relayed = 0;

-- Which identities could not process the commit that led to the room's epoch.
CREATE TABLE reports (
    room     INTEGER NOT NULL,
    identity BLOB NOT NULL,
    PRIMARY KEY (room, identity)
) STRICT, WITHOUT ROWID;

CREATE TABLE devices (
    n           INTEGER PRIMARY KEY,
    id          BLOB NOT NULL UNIQUE,
    identity    BLOB NOT NULL,
    key         BLOB NOT NULL UNIQUE,
    role        INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    credential  BLOB NOT NULL,
    enrolled_ms INTEGER NOT NULL,
    seen_ms     INTEGER NOT NULL,
    counter     BLOB,                        -- NULL = unset
    next_mail   INTEGER NOT NULL DEFAULT 1   -- ids are never given twice
) STRICT;
CREATE INDEX devices_of_identity ON devices (identity);

CREATE TABLE sessions (
    token      BLOB PRIMARY KEY,
    device     BLOB NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_of_device ON sessions (device);
CREATE INDEX sessions_by_end ON sessions (expires_ms);

CREATE TABLE revocations (
    n          INTEGER PRIMARY KEY,
    identity   BLOB NOT NULL,
    device     BLOB NOT NULL,
    bytes      BLOB NOT NULL,
    revoked_ms INTEGER NOT NULL,
    UNIQUE (identity, device) -- anybody can sign one that names somebody else's device
) STRICT;

CREATE TABLE nonces (
    key        BLOB NOT NULL,
    nonce      BLOB NOT NULL,
    expires_ms INTEGER NOT NULL,
    PRIMARY KEY (key, nonce)
) STRICT, WITHOUT ROWID;
CREATE INDEX nonces_by_end ON nonces (expires_ms);

CREATE TABLE snapshots (
    identity BLOB PRIMARY KEY,
    version  INTEGER NOT NULL,
    sealed   BLOB NOT NULL
) STRICT;

CREATE TABLE archive (
    n          INTEGER PRIMARY KEY,
    identity   BLOB NOT NULL,
    name       BLOB NOT NULL,
    size       INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    sealed     BLOB NOT NULL,
    UNIQUE (identity, name)
) STRICT;
CREATE INDEX archive_by_age ON archive (created_ms);

CREATE TABLE wrapped_keys (
    device     BLOB NOT NULL,
    generation INTEGER NOT NULL,
    wrapped    BLOB NOT NULL,
    PRIMARY KEY (device, generation)
) STRICT, WITHOUT ROWID;

-- A package that was handed out keeps its row without the bytes: whose it was
-- must be known until it expires, and its ref must not come in again.
CREATE TABLE key_packages (
    n            INTEGER PRIMARY KEY,
    ref          BLOB NOT NULL UNIQUE,
    device       BLOB NOT NULL,
    identity     BLOB NOT NULL,
    suite        INTEGER NOT NULL,
    not_after_ms INTEGER NOT NULL,
    last_resort  INTEGER NOT NULL,
    claimed      INTEGER NOT NULL DEFAULT 0,
    bytes        BLOB NOT NULL
) STRICT;
CREATE INDEX key_packages_left ON key_packages (identity, suite, device, last_resort, n) WHERE claimed = 0;
CREATE INDEX key_packages_of_device ON key_packages (device, suite);
CREATE INDEX key_packages_by_end ON key_packages (not_after_ms);

CREATE TABLE mail (
    device     BLOB NOT NULL,
    id         INTEGER NOT NULL,
    kind       INTEGER NOT NULL,
    room       BLOB NOT NULL,
    epoch      INTEGER NOT NULL,
    start_seq  INTEGER NOT NULL,
    payload    BLOB NOT NULL,
    created_ms INTEGER NOT NULL,
    key        TEXT,                       -- NULL = none
    acked      INTEGER NOT NULL DEFAULT 0, -- kept for its key only
    PRIMARY KEY (device, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX mail_by_key ON mail (device, key) WHERE key IS NOT NULL;
CREATE INDEX mail_done ON mail (created_ms) WHERE acked = 1;

CREATE TABLE blobs (
    id         BLOB PRIMARY KEY,
    owner      BLOB NOT NULL,
    size       INTEGER NOT NULL,
    received   INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    refs       INTEGER NOT NULL DEFAULT 0, -- rows in blob_refs
    dead       INTEGER NOT NULL DEFAULT 0  -- its bytes are to be deleted, then the row
) STRICT, WITHOUT ROWID;
CREATE INDEX blobs_of_owner ON blobs (owner) WHERE refs = 0 AND dead = 0;
CREATE INDEX blobs_loose ON blobs (created_ms) WHERE refs = 0 AND dead = 0;
CREATE INDEX blobs_dead ON blobs (id) WHERE dead = 1;
CREATE TABLE blob_refs (
    room INTEGER NOT NULL,
    seq  INTEGER NOT NULL,
    blob BLOB NOT NULL,
    PRIMARY KEY (room, seq, blob)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_refs_of_blob ON blob_refs (blob, room);

CREATE TABLE profiles (
    identity BLOB PRIMARY KEY,
    username TEXT UNIQUE, -- NULL = none
    record   BLOB NOT NULL,
    version  INTEGER NOT NULL,
    put_ms   INTEGER NOT NULL
) STRICT;

CREATE TABLE listings (
    room      BLOB PRIMARY KEY,
    title     TEXT NOT NULL,
    about     TEXT NOT NULL,
    folded    TEXT NOT NULL, -- title and description in lower case, for the search
    members   INTEGER NOT NULL,
    listed_ms INTEGER NOT NULL,
    listed_by BLOB NOT NULL,
    picture   BLOB
) STRICT;
CREATE INDEX listings_by_age ON listings (listed_ms DESC, room);
