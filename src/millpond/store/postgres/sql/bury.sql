-- A record that cannot be read: it ends, with what led to it left as it is.
WITH gone AS (
    DELETE FROM {schema}.jobs AS job
    USING unnest($1::uuid[], $2::bigint[]) AS bad (id, now)
    WHERE job.id = bad.id
    RETURNING job.*, bad.now AS ended_at
),

kept AS (
    INSERT INTO {schema}.history (
        id, task, queue, state, reason, priority, rank, run_at, created_at, started_at, finished_at, expires_at, attempt,
        errors, crashes, lost, token, alone, unique_key, unique_for, slots, depends_on, has_children, options, payload,
        progress, attempts
    )
    SELECT
        id, task, queue, 'dead', 'damaged', priority, rank, run_at, created_at, started_at, ended_at, expires_at,
        attempt, errors, crashes, lost, token, alone, unique_key, unique_for, slots, depends_on, has_children, options,
        payload, progress, attempts
    FROM gone
)

SELECT id, task, queue, unique_key, has_children, parked FROM gone
