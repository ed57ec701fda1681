-- The part of this database in a move between backends: at most one row.
CREATE TABLE moves (
	installation TEXT NOT NULL,
	state        TEXT NOT NULL, -- empty: in use
	peer         TEXT NOT NULL,
	at           INTEGER NOT NULL
) STRICT;
