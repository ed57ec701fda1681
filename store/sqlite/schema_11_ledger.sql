-- What was used by tenant, model, class and hour. The rows of node '' count lines of batches, and the
-- others what a node has saved, with the number of its last save.
CREATE TABLE ledger (
	hour        INTEGER NOT NULL,
	tenant      TEXT NOT NULL,
	model       TEXT NOT NULL,
	class       TEXT NOT NULL,
	node        TEXT NOT NULL,
	requests    INTEGER NOT NULL,
	failed      INTEGER NOT NULL,
	input       INTEGER NOT NULL,
	output      INTEGER NOT NULL,
	total       INTEGER NOT NULL,
	cached      INTEGER NOT NULL,
	reasoning   INTEGER NOT NULL,
	incarnation INTEGER NOT NULL,
	save        INTEGER NOT NULL,
	PRIMARY KEY (hour, tenant, model, class, node)
) STRICT, WITHOUT ROWID;

-- The hour in which the ledger counts the tally of a chunk. 0: it does not, as for chunks that were
-- done before there was a ledger.
ALTER TABLE chunks ADD COLUMN counted INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER chunks_used AFTER UPDATE OF counted ON chunks
WHEN old.counted > 0 OR new.counted > 0 BEGIN
	INSERT INTO ledger (hour, tenant, model, class, node, requests, failed, input, output, total,
		cached, reasoning, incarnation, save)
		SELECT c.hour, b.tenant, new.model, 'batch', '',
			sum(c.sign * (c.completed + c.failed)), sum(c.sign * c.failed),
			sum(c.sign * coalesce(json_extract(c.usage, '$.InputTokens'), 0)),
			sum(c.sign * coalesce(json_extract(c.usage, '$.OutputTokens'), 0)),
			sum(c.sign * coalesce(json_extract(c.usage, '$.TotalTokens'), 0)),
			sum(c.sign * coalesce(json_extract(c.usage, '$.CachedTokens'), 0)),
			sum(c.sign * coalesce(json_extract(c.usage, '$.ReasoningTokens'), 0)), 0, 0
		FROM (SELECT old.counted AS hour, -1 AS sign, old.completed AS completed,
				old.failed AS failed, CAST(old.usage AS TEXT) AS usage
			UNION ALL SELECT new.counted, 1, new.completed, new.failed, CAST(new.usage AS TEXT)
		) AS c JOIN batches AS b ON b.id = new.batch
		WHERE c.hour > 0 GROUP BY c.hour
		ON CONFLICT (hour, tenant, model, class, node) DO UPDATE SET
			requests = requests + excluded.requests, failed = failed + excluded.failed,
			input = input + excluded.input, output = output + excluded.output,
			total = total + excluded.total, cached = cached + excluded.cached,
			reasoning = reasoning + excluded.reasoning;
END;
