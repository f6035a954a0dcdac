-- A table for each day, of the last 60, on which a job has ended.
SELECT {schema}.make_days(
    min(finished_at), ((extract(EPOCH FROM now()) * 1000000)::bigint / 86400000000 - min(finished_at) / 86400000000)::integer
)
FROM {schema}.history_2
WHERE state <> 'dead' AND finished_at > (extract(EPOCH FROM now() - INTERVAL '59 days') * 1000000)::bigint
HAVING count(*) > 0;
INSERT INTO {schema}.jobs (
    id, rank, run_at, created_at, token, attempt, errors, crashes, lost, waits, priority, alone, cancelling,
    has_children, state, task, queue, options, payload, attempts, node, started_at, expires_at, unique_key, unique_for,
    slots, depends_on, parked, progress
)
SELECT
    id::uuid, rank, run_at, created_at, token, attempt, errors, crashes, lost, waits, priority, alone, cancelling,
    has_children, state, task, queue, options, payload, attempts, CASE WHEN state = 'running' THEN node END, started_at,
    expires_at, unique_key, unique_for, slots, depends_on, CASE WHEN state = 'queued' THEN parked END, progress
FROM {schema}.jobs_2;
INSERT INTO {schema}.history (
    id, finished_at, rank, run_at, created_at, token, attempt, errors, crashes, lost, priority, alone, has_children,
    state, task, queue, options, payload, attempts, reason, started_at, expires_at, unique_key, unique_for, slots,
    depends_on, result, progress
)
SELECT
    id::uuid, coalesce(finished_at, created_at), rank, run_at, created_at, token, attempt, errors, crashes, lost,
    priority, alone, has_children, state, task, queue, options, payload, attempts, reason, started_at, expires_at,
    unique_key, unique_for, slots, depends_on, result, progress
FROM {schema}.history_2;
INSERT INTO {schema}.uniques (task, unique_key, job, until)
SELECT task, unique_key, job::uuid, until FROM {schema}.uniques_2;
INSERT INTO {schema}.dependencies (parent, child)
SELECT parent::uuid, child::uuid FROM {schema}.dependencies_2;
INSERT INTO {schema}.slots (name, capacity, used, parked)
SELECT name, capacity, greatest(used, 0), greatest(parked, 0) FROM {schema}.slots_2;
INSERT INTO {schema}.queues (name, paused, rate, tokens, filled_at)
SELECT name, paused, rate, tokens, filled_at FROM {schema}.queues_2;
INSERT INTO {schema}.nodes (id, host, epoch, info, lease_until, lease, steady_since)
SELECT id, host, epoch, info, lease_until, lease, steady_since FROM {schema}.nodes_2;
INSERT INTO {schema}.exchanges (node, sequence, sealed) SELECT id, sequence, sealed FROM {schema}.nodes_2;
INSERT INTO {schema}.graves (node, buried_at) SELECT node, buried_at FROM {schema}.graves_2;
INSERT INTO {schema}.minutes (queue, minute, what, bucket, shard, number)
SELECT queue, minute, what, bucket, shard, number FROM {schema}.minutes_2;
INSERT INTO {schema}.tallies (minute, queue, what, shard, number)
SELECT minute, queue, what, shard, number FROM {schema}.tallies_2;
INSERT INTO {schema}.ticks (recurring, at, job, planned_at)
SELECT recurring, at, job::uuid, planned_at FROM {schema}.ticks_2;
INSERT INTO {schema}.documents (name, value, version) SELECT name, value, version FROM {schema}.documents_2;
INSERT INTO {schema}.logs (name, number, at, data) SELECT name, number, at, data FROM {schema}.logs_2;
DROP TABLE
    {schema}.jobs_2, {schema}.history_2, {schema}.uniques_2, {schema}.dependencies_2, {schema}.slots_2,
    {schema}.queues_2, {schema}.nodes_2, {schema}.graves_2, {schema}.minutes_2, {schema}.tallies_2, {schema}.ticks_2,
    {schema}.documents_2, {schema}.logs_2, {schema}.meta_2;
