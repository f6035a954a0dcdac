-- Every prune looks for unique keys that lapsed; without an index it reads all of them.
CREATE INDEX IF NOT EXISTS millpond_lapsing ON millpond_uniques (until) WHERE until IS NOT NULL;
-- The same for ticks that were planned long ago.
CREATE INDEX IF NOT EXISTS millpond_planned ON millpond_ticks (planned_at);
-- Code that knows version 3 goes on.
UPDATE millpond_meta SET version = 4, compatible_from = 3 WHERE version = 3
