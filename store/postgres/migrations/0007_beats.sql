-- beat counts heartbeats, which are written beside the files after they are counted here. older is
-- since when this database is known to be older than its files: a heartbeat there has a higher number.
ALTER TABLE cluster ADD COLUMN beat bigint NOT NULL DEFAULT 0, ADD COLUMN older bigint;
