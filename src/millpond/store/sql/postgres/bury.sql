-- A record that cannot be read: it ends, with what led to it left as it is.
WITH gone AS (
    DELETE FROM {schema}.jobs AS job
    USING unnest($1::text[], $2::bigint[]) AS bad (id, now)
    WHERE job.id = bad.id
    RETURNING job.*, bad.now AS ended_at
)

INSERT INTO {schema}.history (id, task, queue, state, reason, priority, rank, run_at, created_at, started_at, finished_at, expires_at, attempt, errors, crashes, lost, token, node, alone, cancelling, unique_key, slots, depends_on, options, payload, unique_for, waits, has_children, parked, result, progress, attempts)
SELECT id, task, queue, 'dead', 'damaged', priority, rank, run_at, created_at, started_at, ended_at, expires_at, attempt, errors, crashes, lost, token, NULL, alone, cancelling, unique_key, slots, depends_on, options, payload, unique_for, waits, has_children, NULL, result, progress, attempts
FROM gone
RETURNING id, task, queue, unique_key, has_children, parked
