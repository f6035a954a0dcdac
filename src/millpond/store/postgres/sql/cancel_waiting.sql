WITH gone AS (
    DELETE FROM {schema}.jobs AS job
    USING unnest($1::uuid[], $2::text[], $3::bigint[]) AS end_of (id, reason, now)
    WHERE job.id = end_of.id AND job.state IN ('blocked', 'scheduled', 'queued')
    RETURNING job.*, end_of.reason AS end_reason, end_of.now AS ended_at
),

kept AS (
    INSERT INTO {schema}.history (
        id, task, queue, state, reason, priority, rank, run_at, created_at, started_at, finished_at, expires_at, attempt,
        errors, crashes, lost, token, alone, unique_key, unique_for, slots, depends_on, has_children, options, payload,
        progress, attempts
    )
    SELECT
        id, task, queue, 'cancelled', end_reason, priority, rank, run_at, created_at, started_at, ended_at, expires_at,
        attempt, errors, crashes, lost, token, alone, unique_key, unique_for, slots, depends_on, has_children, options,
        payload, progress, attempts
    FROM gone
)

SELECT id, task, queue, unique_key, has_children, parked, state FROM gone
