-- What endpoints of webhooks are notified of: up to which change, and the last notice about each batch.
CREATE TABLE notice_cursors (
	endpoint TEXT PRIMARY KEY,
	cursor   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE notices (
	endpoint TEXT NOT NULL,
	batch    TEXT NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
	id       TEXT NOT NULL,
	event    TEXT NOT NULL,
	created  INTEGER NOT NULL,
	attempts INTEGER NOT NULL,
	due      INTEGER, -- null: delivered or given up
	PRIMARY KEY (endpoint, batch)
) STRICT, WITHOUT ROWID;
CREATE INDEX notices_batch ON notices (batch);
CREATE INDEX notices_due ON notices (endpoint, due) WHERE due IS NOT NULL;
