-- Who refers to a blob: the row of a file, whether expired or not, and a batch that isn't terminal.
CREATE TABLE file_blobs (
	blob TEXT NOT NULL,
	file TEXT NOT NULL REFERENCES files (id) ON DELETE CASCADE,
	PRIMARY KEY (blob, file)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_blobs_file ON file_blobs (file);

CREATE TABLE batch_blobs (
	blob  TEXT NOT NULL,
	batch TEXT NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
	PRIMARY KEY (blob, batch)
) STRICT, WITHOUT ROWID;
CREATE INDEX batch_blobs_batch ON batch_blobs (batch);

-- Blobs that nothing refers to, nor may refer to again.
CREATE TABLE dropped_blobs (
	blob    TEXT PRIMARY KEY,
	dropped INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX dropped_blobs_dropped ON dropped_blobs (dropped);

INSERT OR IGNORE INTO file_blobs (blob, file)
	SELECT json_extract(CAST(doc AS TEXT), '$.BlobKey'), id FROM files WHERE json_extract(CAST(doc AS TEXT), '$.BlobKey') <> ''
	UNION ALL
	SELECT json_extract(CAST(doc AS TEXT), '$.IndexKey'), id FROM files WHERE json_extract(CAST(doc AS TEXT), '$.IndexKey') <> '';

INSERT OR IGNORE INTO batch_blobs (blob, batch)
	SELECT json_extract(i.value, '$.BlobKey'), b.id FROM batches AS b, json_each(CAST(b.doc AS TEXT), '$.Inputs') AS i
	WHERE b.ended = 0 AND json_extract(i.value, '$.BlobKey') <> ''
	UNION ALL
	SELECT json_extract(i.value, '$.IndexKey'), b.id FROM batches AS b, json_each(CAST(b.doc AS TEXT), '$.Inputs') AS i
	WHERE b.ended = 0 AND json_extract(i.value, '$.IndexKey') <> '';
