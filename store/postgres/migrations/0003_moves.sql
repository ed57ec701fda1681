-- The part of this database in a move between backends: at most one row.
CREATE TABLE moves (
	installation text NOT NULL,
	state        text NOT NULL, -- empty: in use
	peer         text NOT NULL,
	at           bigint NOT NULL
);
