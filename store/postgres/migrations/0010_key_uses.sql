-- When API keys were last used, by the SHA-256 of the key.
CREATE TABLE key_uses (
	hash text COLLATE "C" NOT NULL PRIMARY KEY,
	used bigint NOT NULL
);
