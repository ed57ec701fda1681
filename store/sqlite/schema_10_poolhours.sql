-- What users of pools felt by hour, and what batch work did. The last save is that of a saver with
-- a number, so that it counts once.
CREATE TABLE pool_hours (
	pool             TEXT NOT NULL,
	hour             INTEGER NOT NULL,
	firsts           REAL NOT NULL,
	late_firsts      REAL NOT NULL,
	estimated_firsts REAL NOT NULL,
	added_firsts     REAL NOT NULL,
	tokens           REAL NOT NULL,
	late_tokens      REAL NOT NULL,
	estimated_tokens REAL NOT NULL,
	added_tokens     REAL NOT NULL,
	allowed          REAL NOT NULL,
	lines            INTEGER NOT NULL,
	line_tokens      INTEGER NOT NULL,
	saver            TEXT NOT NULL,
	save             INTEGER NOT NULL,
	PRIMARY KEY (pool, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX pool_hours_hour ON pool_hours (hour);
