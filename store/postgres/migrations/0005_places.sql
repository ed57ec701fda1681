-- Where the bytes of files are, for people, and what the marker there contains. Null: no process has
-- looked since these columns exist.
ALTER TABLE cluster ADD COLUMN place text, ADD COLUMN marker text;
