CREATE TABLE rows (
	part  TEXT NOT NULL,
	key   TEXT NOT NULL,
	value BLOB NOT NULL,
	PRIMARY KEY (part, key)
) WITHOUT ROWID;

CREATE TABLE lines (
	n      INTEGER PRIMARY KEY,
	room   BLOB NOT NULL,
	id     BLOB NOT NULL,
	seq    INTEGER NOT NULL,
	target BLOB,
	expire INTEGER NOT NULL,
	body   BLOB NOT NULL,
	UNIQUE (room, id)
);
CREATE INDEX lines_by_seq ON lines (room, seq);
CREATE INDEX lines_by_target ON lines (room, target) WHERE target IS NOT NULL;
CREATE INDEX lines_by_expire ON lines (expire) WHERE expire > 0;

CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = 'trigram');
-- What is deleted leaves no trace in the index.
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
