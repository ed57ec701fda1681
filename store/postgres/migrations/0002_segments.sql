-- The register of journal segments: which objects exist, and where in them the journals of chunks
-- are. There is a row for each segment and for each chunk in it, never one for a line.

-- The numbers of processes that write segments.
CREATE SEQUENCE segment_processes;

-- Keys of segments whose stamp is not above through are not registered any more. Registrations
-- share an advisory lock that the sweep takes alone, so that they do not wait for each other.
CREATE TABLE segment_sweep (through bigint NOT NULL);
INSERT INTO segment_sweep VALUES (0);

CREATE TABLE segments (
	id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	key    text COLLATE "C" NOT NULL UNIQUE, -- the name of the object; it begins with the stamp
	stamp  bigint NOT NULL,
	bytes  bigint NOT NULL,
	ranges bigint NOT NULL, -- how many rows of segment_ranges name it
	queued bigint           -- since when its object may be deleted; null: it has ranges
) WITH (fillfactor = 80);
CREATE INDEX segments_queued ON segments (queued, id) WHERE queued IS NOT NULL;

CREATE TABLE journals (
	id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	batch text COLLATE "C" NOT NULL,
	idx   bigint NOT NULL,
	epoch bigint NOT NULL,
	bytes bigint NOT NULL, -- the length of the journal, the position of the next range
	UNIQUE (batch, idx)
) WITH (fillfactor = 50);

-- The ranges of a journal have no gaps. at is the position in the journal, place that in the object.
CREATE TABLE segment_ranges (
	journal bigint NOT NULL,
	at      bigint NOT NULL,
	length  bigint NOT NULL,
	segment bigint NOT NULL,
	place   bigint NOT NULL,
	PRIMARY KEY (journal, at)
);
