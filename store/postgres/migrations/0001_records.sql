-- Times are microseconds since 1970. seq grows with every insert and breaks ties between equal times.
-- Text is compared by bytes. Text that PostgreSQL can't hold is encoded, see text.go.

-- The identity of this installation. Storage that belongs to it carries the same id.
CREATE TABLE cluster (
	id      text NOT NULL,
	created bigint NOT NULL
);

-- The clock of leases, of the retention of keys, and of all else that two processes compare.
CREATE FUNCTION tidefill_now() RETURNS bigint LANGUAGE sql VOLATILE AS
	$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- The timeline of the server, which grows when a standby is promoted. Transaction ids of different
-- timelines can't be compared.
CREATE FUNCTION tidefill_timeline() RETURNS bigint LANGUAGE sql VOLATILE AS
	$$ SELECT ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint $$;

-- Ends the transaction with an error of class TF unless ok is true. So a transaction with conditions
-- is sent in one piece, and holds no locks while a client thinks.
CREATE FUNCTION tidefill_require(ok boolean, code text, message text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF ok IS NOT TRUE THEN
		RAISE EXCEPTION '%', message USING ERRCODE = code;
	END IF;
END $$;

CREATE TABLE files (
	seq     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id      text COLLATE "C" NOT NULL UNIQUE,
	tenant  text COLLATE "C" NOT NULL,
	purpose text COLLATE "C" NOT NULL,
	created bigint NOT NULL,
	expires bigint NOT NULL, -- the largest integer: never
	bytes   bigint NOT NULL,
	doc     bytea NOT NULL,
	summary bytea            -- null: it is no batch input
);
CREATE INDEX files_created ON files (tenant, created, seq, expires);
CREATE INDEX files_purpose ON files (tenant, purpose, created, seq, expires);
CREATE INDEX files_expires ON files (expires) WHERE expires < 9223372036854775807;

CREATE TABLE uploads (
	seq     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id      text COLLATE "C" NOT NULL UNIQUE,
	tenant  text COLLATE "C" NOT NULL,
	state   text COLLATE "C" NOT NULL,
	file    text COLLATE "C" NOT NULL, -- empty unless completed
	expires bigint NOT NULL,
	doc     bytea NOT NULL
);
CREATE INDEX uploads_pending ON uploads (tenant, expires) WHERE state = 'pending';
CREATE INDEX uploads_expires ON uploads (expires);

CREATE TABLE parts (
	seq    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id     text COLLATE "C" NOT NULL UNIQUE,
	upload text COLLATE "C" NOT NULL REFERENCES uploads (id) ON DELETE CASCADE,
	tenant text COLLATE "C" NOT NULL,
	bytes  bigint NOT NULL,
	doc    bytea NOT NULL
);
CREATE INDEX parts_upload ON parts (upload, seq) INCLUDE (bytes);

-- The bytes that each tenant keeps in files and in parts of uploads: the sum of its rows. There are
-- several, and each connection counts in one of them, so that uploads of a tenant do not wait for
-- each other.
CREATE TABLE usage (
	tenant text COLLATE "C" NOT NULL,
	slot   smallint NOT NULL,
	bytes  bigint NOT NULL,
	PRIMARY KEY (tenant, slot)
) WITH (fillfactor = 50);

CREATE FUNCTION tidefill_count_usage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'DELETE' THEN
		INSERT INTO usage VALUES (OLD.tenant, pg_backend_pid() & 15, -OLD.bytes)
			ON CONFLICT (tenant, slot) DO UPDATE SET bytes = usage.bytes + excluded.bytes;
	ELSE
		INSERT INTO usage VALUES (NEW.tenant, pg_backend_pid() & 15, NEW.bytes)
			ON CONFLICT (tenant, slot) DO UPDATE SET bytes = usage.bytes + excluded.bytes;
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER files_usage AFTER INSERT OR DELETE ON files FOR EACH ROW EXECUTE FUNCTION tidefill_count_usage();
CREATE TRIGGER parts_usage AFTER INSERT OR DELETE ON parts FOR EACH ROW EXECUTE FUNCTION tidefill_count_usage();

CREATE TABLE batches (
	seq      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id       text COLLATE "C" NOT NULL UNIQUE,
	tenant   text COLLATE "C" NOT NULL,
	version  bigint NOT NULL,
	state    text COLLATE "C" NOT NULL,
	created  bigint NOT NULL,
	due      bigint NOT NULL, -- the largest integer: no deadline
	ended    bigint NOT NULL, -- 0: not terminal
	timeline bigint NOT NULL, -- of the transaction that changed it last
	changed  xid8 NOT NULL,   -- that transaction
	doc      bytea NOT NULL
) WITH (fillfactor = 90);
CREATE INDEX batches_created ON batches (tenant, state, created, seq, due);
CREATE INDEX batches_due ON batches (tenant, state, due, seq, created);
CREATE INDEX batches_changed ON batches (timeline, changed);
CREATE INDEX batches_live ON batches (timeline, changed) WHERE ended = 0;
CREATE INDEX batches_ended ON batches (ended) WHERE ended > 0;

CREATE TABLE batch_parameters (
	batch bigint PRIMARY KEY REFERENCES batches (seq) ON DELETE CASCADE,
	doc   bytea NOT NULL
);

-- A tag is a hash of tenant and model, tenant and metadata key, or tenant and metadata key and value.
CREATE TABLE batch_tags (
	seq     bigint NOT NULL REFERENCES batches (seq) ON DELETE CASCADE,
	tag     bigint NOT NULL,
	state   text COLLATE "C" NOT NULL,
	created bigint NOT NULL,
	due     bigint NOT NULL,
	PRIMARY KEY (seq, tag)
);
CREATE INDEX batch_tags_created ON batch_tags (tag, state, created, seq, due);
CREATE INDEX batch_tags_due ON batch_tags (tag, state, due, seq, created);

-- Who refers to a blob: the row of a file, whether expired or not, and a batch that isn't terminal.
CREATE TABLE file_blobs (
	blob text COLLATE "C" NOT NULL,
	file text COLLATE "C" NOT NULL REFERENCES files (id) ON DELETE CASCADE,
	PRIMARY KEY (blob, file)
);
CREATE INDEX file_blobs_file ON file_blobs (file);

CREATE TABLE batch_blobs (
	blob  text COLLATE "C" NOT NULL,
	batch text COLLATE "C" NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
	PRIMARY KEY (blob, batch)
);
CREATE INDEX batch_blobs_batch ON batch_blobs (batch);

-- Blobs that nothing refers to, nor may refer to again.
CREATE TABLE dropped_blobs (
	blob    text COLLATE "C" PRIMARY KEY,
	dropped bigint NOT NULL
);
CREATE INDEX dropped_blobs_dropped ON dropped_blobs (dropped);

CREATE TABLE owners (
	node        text COLLATE "C" PRIMARY KEY,
	incarnation bigint NOT NULL,
	lease_until bigint NOT NULL
) WITH (fillfactor = 25);

-- node and incarnation name the newest claimant; whether it still holds the chunk is for owners to say.
CREATE TABLE chunks (
	batch       text COLLATE "C" NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
	idx         bigint NOT NULL,
	model       text COLLATE "C" NOT NULL,
	first       bigint NOT NULL,
	count       bigint NOT NULL,
	epoch       bigint NOT NULL DEFAULT 0,
	done        boolean NOT NULL DEFAULT false,
	completed   bigint NOT NULL DEFAULT 0, -- the tally; zero until done
	failed      bigint NOT NULL DEFAULT 0,
	usage       bytea NOT NULL DEFAULT '{}',
	node        text COLLATE "C",
	incarnation bigint,
	PRIMARY KEY (batch, idx)
) WITH (fillfactor = 70);
CREATE INDEX chunks_open ON chunks (batch, model, idx) WHERE NOT done;

-- Rows stay when a lock is free, so that its epoch never falls.
CREATE TABLE locks (
	name        text COLLATE "C" PRIMARY KEY,
	epoch       bigint NOT NULL,
	node        text COLLATE "C",
	incarnation bigint
) WITH (fillfactor = 70);

-- Who leads which runner or model. Whether it still does is for owners to say, as with chunks.
CREATE TABLE leads (
	name        text COLLATE "C" PRIMARY KEY,
	epoch       bigint NOT NULL,
	node        text COLLATE "C" NOT NULL,
	incarnation bigint NOT NULL
);

-- The epochs of leaderships. Whoever takes one holds the locks of its names.
CREATE SEQUENCE lead_epochs;

-- What dispatchers have learned of pools, for those that lead them next.
CREATE TABLE learned (
	pool  text COLLATE "C" NOT NULL,
	kind  text COLLATE "C" NOT NULL,
	saved bigint NOT NULL,
	data  bytea NOT NULL,
	PRIMARY KEY (pool, kind)
);
CREATE INDEX learned_saved ON learned (saved);

-- What dispatchers post for users. It may be lost: a crash of the server empties the table.
CREATE UNLOGGED TABLE progress (
	batch       text COLLATE "C" NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
	node        text COLLATE "C" NOT NULL,
	incarnation bigint NOT NULL,
	doc         bytea NOT NULL,
	PRIMARY KEY (batch, node)
) WITH (fillfactor = 50);

CREATE TABLE idempotency_keys (
	tenant  text COLLATE "C" NOT NULL,
	key     text COLLATE "C" NOT NULL,
	value   text COLLATE "C" NOT NULL,
	expires bigint NOT NULL,
	PRIMARY KEY (tenant, key)
);
CREATE INDEX idempotency_keys_expires ON idempotency_keys (expires);

-- What endpoints of webhooks are notified of: up to which change, and the last notice about each batch.
CREATE TABLE notice_cursors (
	endpoint text COLLATE "C" PRIMARY KEY,
	cursor   text COLLATE "C" NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE notices (
	endpoint text COLLATE "C" NOT NULL,
	batch    text COLLATE "C" NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
	id       text COLLATE "C" NOT NULL,
	event    text COLLATE "C" NOT NULL,
	created  bigint NOT NULL,
	attempts bigint NOT NULL,
	due      bigint, -- null: delivered or given up
	PRIMARY KEY (endpoint, batch)
);
CREATE INDEX notices_batch ON notices (batch);
CREATE INDEX notices_due ON notices (endpoint, due) WHERE due IS NOT NULL;
