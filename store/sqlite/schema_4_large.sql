-- What may be large moves out of the documents that listings and dispatchers read.

ALTER TABLE files ADD COLUMN summary BLOB;
UPDATE files SET
	summary = CAST(json_extract(CAST(doc AS TEXT), '$.Summary') AS BLOB),
	doc = CAST(json_remove(CAST(doc AS TEXT), '$.Summary') AS BLOB);

CREATE TABLE batch_parameters (
	batch INTEGER PRIMARY KEY REFERENCES batches (seq) ON DELETE CASCADE,
	doc   BLOB NOT NULL
) STRICT;
INSERT INTO batch_parameters
	SELECT seq, CAST(json_object(
		'OptionsJSON', json_extract(options, '$.OptionsJSON'),
		'Defaults', json_extract(options, '$.Options.Defaults'),
		'Overrides', json_extract(options, '$.Options.Overrides')) AS BLOB)
	FROM (SELECT seq, CAST(doc AS TEXT) AS options FROM batches)
	WHERE json_type(options, '$.OptionsJSON.defaults') IS NOT NULL OR json_type(options, '$.OptionsJSON.overrides') IS NOT NULL;
UPDATE batches SET doc = CAST(json_set(
	json_remove(CAST(doc AS TEXT), '$.Options.Defaults', '$.Options.Overrides', '$.OptionsJSON.defaults', '$.OptionsJSON.overrides'),
	'$.Apart', json((SELECT json_group_array(key) FROM json_each(CAST(doc AS TEXT), '$.OptionsJSON') WHERE key IN ('defaults', 'overrides')))) AS BLOB)
	WHERE seq IN (SELECT batch FROM batch_parameters);
