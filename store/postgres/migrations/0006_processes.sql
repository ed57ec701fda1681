-- The process that has registered the node, as JSON. Empty: one of an earlier release.
ALTER TABLE owners ADD COLUMN process text NOT NULL DEFAULT '';
