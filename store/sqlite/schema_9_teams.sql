-- The dispatchers with the same runners, which share the pools.
ALTER TABLE owners ADD COLUMN team TEXT NOT NULL DEFAULT '';
