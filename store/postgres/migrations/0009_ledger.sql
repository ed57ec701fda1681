-- What was used by tenant, model, class and hour. The rows of node '' count lines of batches, and the
-- others what a node has saved, with the number of its last save.
CREATE TABLE ledger (
	hour        bigint NOT NULL,
	tenant      text COLLATE "C" NOT NULL,
	model       text COLLATE "C" NOT NULL,
	class       text COLLATE "C" NOT NULL,
	node        text COLLATE "C" NOT NULL,
	requests    bigint NOT NULL,
	failed      bigint NOT NULL,
	input       bigint NOT NULL,
	output      bigint NOT NULL,
	total       bigint NOT NULL,
	cached      bigint NOT NULL,
	reasoning   bigint NOT NULL,
	incarnation bigint NOT NULL,
	save        bigint NOT NULL,
	PRIMARY KEY (hour, tenant, model, class, node)
) WITH (fillfactor = 50);

-- The hour in which the ledger counts the tally of a chunk. 0: it does not, as for chunks that were
-- done before there was a ledger.
ALTER TABLE chunks ADD COLUMN counted bigint NOT NULL DEFAULT 0;

CREATE FUNCTION tidefill_count_used() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO ledger AS l (hour, tenant, model, class, node, requests, failed, input, output, total,
		cached, reasoning, incarnation, save)
		SELECT c.hour, b.tenant, NEW.model, 'batch', '',
			sum(c.sign * (c.completed + c.failed)), sum(c.sign * c.failed),
			sum(c.sign * coalesce((c.usage ->> 'InputTokens')::bigint, 0)),
			sum(c.sign * coalesce((c.usage ->> 'OutputTokens')::bigint, 0)),
			sum(c.sign * coalesce((c.usage ->> 'TotalTokens')::bigint, 0)),
			sum(c.sign * coalesce((c.usage ->> 'CachedTokens')::bigint, 0)),
			sum(c.sign * coalesce((c.usage ->> 'ReasoningTokens')::bigint, 0)), 0, 0
		FROM (VALUES
			(OLD.counted, -1, OLD.completed, OLD.failed, convert_from(OLD.usage, 'UTF8')::json),
			(NEW.counted, 1, NEW.completed, NEW.failed, convert_from(NEW.usage, 'UTF8')::json)
		) AS c (hour, sign, completed, failed, usage) JOIN batches AS b ON b.id = NEW.batch
		WHERE c.hour > 0 GROUP BY c.hour, b.tenant ORDER BY c.hour
		ON CONFLICT (hour, tenant, model, class, node) DO UPDATE SET
			requests = l.requests + excluded.requests, failed = l.failed + excluded.failed,
			input = l.input + excluded.input, output = l.output + excluded.output,
			total = l.total + excluded.total, cached = l.cached + excluded.cached,
			reasoning = l.reasoning + excluded.reasoning;
	RETURN NULL;
END $$;
CREATE TRIGGER chunks_used AFTER UPDATE OF counted ON chunks FOR EACH ROW
	WHEN (OLD.counted > 0 OR NEW.counted > 0) EXECUTE FUNCTION tidefill_count_used();
