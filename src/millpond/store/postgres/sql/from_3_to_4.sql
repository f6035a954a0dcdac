-- Every prune looks for unique keys that lapsed; without an index it reads all of them.
CREATE INDEX CONCURRENTLY lapsing ON {schema}.uniques (until) WHERE until IS NOT NULL;
-- The same for ticks that were planned long ago.
CREATE INDEX CONCURRENTLY planned ON {schema}.ticks (planned_at);
-- Counters only grow; a negative one would give a job more attempts than its rules allow.
ALTER TABLE {schema}.jobs
    DROP CONSTRAINT IF EXISTS jobs_counters,
    ADD CONSTRAINT jobs_counters CHECK (attempt >= 0 AND errors >= 0 AND crashes >= 0 AND lost >= 0) NOT VALID;
ALTER TABLE {schema}.jobs VALIDATE CONSTRAINT jobs_counters;
-- Prunes and lapses change it all the time; its statistics decide whether the index is used.
ALTER TABLE {schema}.ticks SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
-- Room for a new version of each row on its own page: a claim then writes no payload to the log a second time.
ALTER TABLE {schema}.jobs SET (fillfactor = 50);
-- Code that knows version 3 goes on.
UPDATE {schema}.meta SET version = 4, compatible_from = 3 WHERE version = 3
