-- How many bytes each tenant keeps in files and in parts of uploads, counted with every row that comes or goes.

ALTER TABLE files ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE files SET bytes = coalesce(json_extract(CAST(doc AS TEXT), '$.Bytes'), 0);

ALTER TABLE parts ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE parts ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
UPDATE parts SET
	bytes = coalesce(json_extract(CAST(doc AS TEXT), '$.Bytes'), 0),
	tenant = (SELECT tenant FROM uploads WHERE id = upload);
CREATE INDEX parts_bytes ON parts (upload, bytes);

CREATE TABLE usage (
	tenant TEXT PRIMARY KEY,
	bytes  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO usage
	SELECT tenant, sum(bytes) FROM (SELECT tenant, bytes FROM files UNION ALL SELECT tenant, bytes FROM parts) GROUP BY tenant;

CREATE TRIGGER files_come AFTER INSERT ON files BEGIN
	INSERT INTO usage VALUES (new.tenant, new.bytes) ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER files_go AFTER DELETE ON files BEGIN
	UPDATE usage SET bytes = bytes - old.bytes WHERE tenant = old.tenant;
END;
CREATE TRIGGER parts_come AFTER INSERT ON parts BEGIN
	INSERT INTO usage VALUES (new.tenant, new.bytes) ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER parts_go AFTER DELETE ON parts BEGIN
	UPDATE usage SET bytes = bytes - old.bytes WHERE tenant = old.tenant;
END;
