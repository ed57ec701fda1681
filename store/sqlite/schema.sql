-- Times are microseconds since 1970. seq grows with every insert and breaks ties between equal times.

CREATE TABLE files (
	seq     INTEGER PRIMARY KEY AUTOINCREMENT,
	id      TEXT NOT NULL UNIQUE,
	tenant  TEXT NOT NULL,
	purpose TEXT NOT NULL,
	created INTEGER NOT NULL,
	expires INTEGER NOT NULL, -- the largest integer: never
	doc     BLOB NOT NULL
) STRICT;
CREATE INDEX files_created ON files (tenant, created, seq, expires);
CREATE INDEX files_purpose ON files (tenant, purpose, created, seq, expires);
CREATE INDEX files_expires ON files (expires);

CREATE TABLE uploads (
	seq     INTEGER PRIMARY KEY AUTOINCREMENT,
	id      TEXT NOT NULL UNIQUE,
	tenant  TEXT NOT NULL,
	state   TEXT NOT NULL,
	expires INTEGER NOT NULL,
	doc     BLOB NOT NULL
) STRICT;
CREATE INDEX uploads_pending ON uploads (tenant, expires) WHERE state = 'pending';
CREATE INDEX uploads_expires ON uploads (expires);

CREATE TABLE parts (
	seq    INTEGER PRIMARY KEY AUTOINCREMENT,
	id     TEXT NOT NULL UNIQUE,
	upload TEXT NOT NULL REFERENCES uploads (id) ON DELETE CASCADE,
	doc    BLOB NOT NULL
) STRICT;
CREATE INDEX parts_upload ON parts (upload, seq);

CREATE TABLE batches (
	seq      INTEGER PRIMARY KEY AUTOINCREMENT,
	id       TEXT NOT NULL UNIQUE,
	tenant   TEXT NOT NULL,
	version  INTEGER NOT NULL,
	revision INTEGER NOT NULL,
	state    TEXT NOT NULL,
	created  INTEGER NOT NULL,
	due      INTEGER NOT NULL, -- the largest integer: no deadline
	ended    INTEGER NOT NULL, -- 0: not terminal
	doc      BLOB NOT NULL
) STRICT;
CREATE INDEX batches_created ON batches (tenant, state, created, seq, due);
CREATE INDEX batches_due ON batches (tenant, state, due, seq, created);
CREATE INDEX batches_revision ON batches (revision, id);
CREATE INDEX batches_live ON batches (revision, id) WHERE ended = 0;
CREATE INDEX batches_ended ON batches (ended) WHERE ended > 0;

-- A tag is a hash of tenant and model, tenant and metadata key, or tenant and metadata key and value.
CREATE TABLE batch_tags (
	seq     INTEGER NOT NULL REFERENCES batches (seq) ON DELETE CASCADE,
	tag     INTEGER NOT NULL,
	state   TEXT NOT NULL,
	created INTEGER NOT NULL,
	due     INTEGER NOT NULL,
	PRIMARY KEY (seq, tag)
) STRICT, WITHOUT ROWID;
CREATE INDEX batch_tags_created ON batch_tags (tag, state, created, seq, due);
CREATE INDEX batch_tags_due ON batch_tags (tag, state, due, seq, created);

-- The newest revision given out, also when the batch that had it is deleted.
CREATE TABLE revisions (newest INTEGER NOT NULL) STRICT;
INSERT INTO revisions VALUES (0);

CREATE TABLE owners (
	node        TEXT PRIMARY KEY,
	incarnation INTEGER NOT NULL,
	lease_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- node and incarnation name the newest claimant; whether it still holds the chunk is for owners to say.
CREATE TABLE chunks (
	batch       TEXT NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
	idx         INTEGER NOT NULL,
	model       TEXT NOT NULL,
	first       INTEGER NOT NULL,
	count       INTEGER NOT NULL,
	epoch       INTEGER NOT NULL,
	done        INTEGER NOT NULL,
	completed   INTEGER NOT NULL, -- the tally; zero until done
	failed      INTEGER NOT NULL,
	usage       BLOB NOT NULL,
	node        TEXT,
	incarnation INTEGER,
	PRIMARY KEY (batch, idx)
) STRICT, WITHOUT ROWID;
CREATE INDEX chunks_open ON chunks (batch, model, idx) WHERE done = 0;

-- Rows stay when a lock is free, so that its epoch never falls.
CREATE TABLE locks (
	name        TEXT PRIMARY KEY,
	epoch       INTEGER NOT NULL,
	node        TEXT,
	incarnation INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE progress (
	batch       TEXT NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
	node        TEXT NOT NULL,
	incarnation INTEGER NOT NULL,
	doc         BLOB NOT NULL,
	PRIMARY KEY (batch, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency_keys (
	tenant  TEXT NOT NULL,
	key     TEXT NOT NULL,
	value   TEXT NOT NULL,
	expires INTEGER NOT NULL,
	PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_expires ON idempotency_keys (expires);
