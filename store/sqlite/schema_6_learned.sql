-- What dispatchers have learned of pools, for those that lead them next.
CREATE TABLE learned (
	pool  TEXT NOT NULL,
	kind  TEXT NOT NULL,
	saved INTEGER NOT NULL,
	data  BLOB NOT NULL,
	PRIMARY KEY (pool, kind)
) STRICT;
CREATE INDEX learned_saved ON learned (saved);
