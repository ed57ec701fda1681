-- Who leads which runner or model. Whether it still does is for owners to say, as with chunks.
CREATE TABLE leads (
	name        TEXT PRIMARY KEY,
	epoch       INTEGER NOT NULL,
	node        TEXT NOT NULL,
	incarnation INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The newest epoch of any leadership. It is apart from the rows, which go when a leader resigns.
CREATE TABLE lead_epochs (newest INTEGER NOT NULL) STRICT;
INSERT INTO lead_epochs VALUES (0);
