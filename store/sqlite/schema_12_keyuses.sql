-- When API keys were last used, by the SHA-256 of the key.
CREATE TABLE key_uses (
	hash TEXT NOT NULL PRIMARY KEY,
	used INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
