-- A node that still writes as version 2 finds a column missing, and is refused.
CREATE TABLE millpond_exchanges (
    node TEXT PRIMARY KEY,
    sequence INTEGER NOT NULL DEFAULT 0,
    sealed INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
INSERT INTO millpond_exchanges (node, sequence, sealed) SELECT id, sequence, sealed FROM millpond_nodes;
ALTER TABLE millpond_nodes DROP COLUMN sequence;
ALTER TABLE millpond_nodes DROP COLUMN sealed;
ALTER TABLE millpond_slots ADD COLUMN sized_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX millpond_roomy ON millpond_slots (name) WHERE parked > 0 AND used < capacity;
CREATE INDEX millpond_unused ON millpond_slots (sized_at) WHERE used = 0 AND parked = 0;
CREATE TABLE millpond_cascades (parent TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT, WITHOUT ROWID;
ALTER TABLE millpond_meta ADD COLUMN compatible_from INTEGER NOT NULL DEFAULT 3;
