-- What users of pools felt by hour, and what batch work did. The last save is that of a saver with
-- a number, so that it counts once.
CREATE TABLE pool_hours (
	pool             text COLLATE "C" NOT NULL,
	hour             bigint NOT NULL,
	firsts           double precision NOT NULL,
	late_firsts      double precision NOT NULL,
	estimated_firsts double precision NOT NULL,
	added_firsts     double precision NOT NULL,
	tokens           double precision NOT NULL,
	late_tokens      double precision NOT NULL,
	estimated_tokens double precision NOT NULL,
	added_tokens     double precision NOT NULL,
	allowed          double precision NOT NULL,
	lines            bigint NOT NULL,
	line_tokens      bigint NOT NULL,
	saver            text COLLATE "C" NOT NULL,
	save             bigint NOT NULL,
	PRIMARY KEY (pool, hour)
);
CREATE INDEX pool_hours_hour ON pool_hours (hour);
