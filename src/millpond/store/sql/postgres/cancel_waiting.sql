WITH gone AS (
    DELETE FROM {schema}.jobs AS job
    USING unnest($1::text[], $2::text[], $3::bigint[]) AS end_of (id, reason, now)
    WHERE job.id = end_of.id AND job.state IN ('blocked', 'scheduled', 'queued')
    RETURNING job.*, end_of.reason AS end_reason, end_of.now AS ended_at
),

kept AS (
    INSERT INTO {schema}.history (id, task, queue, state, reason, priority, rank, run_at, created_at, started_at, finished_at, expires_at, attempt, errors, crashes, lost, token, node, alone, cancelling, unique_key, slots, depends_on, options, payload, unique_for, waits, has_children, parked, result, progress, attempts)
    SELECT id, task, queue, 'cancelled', end_reason, priority, rank, run_at, created_at, started_at, ended_at, expires_at, attempt, errors, crashes, lost, token, node, alone, cancelling, unique_key, slots, depends_on, options, payload, unique_for, waits, has_children, parked, result, progress, attempts
    FROM gone
    ON CONFLICT (id) DO UPDATE SET -- an end is never refused
        task = excluded.task, queue = excluded.queue, state = excluded.state, reason = excluded.reason,
        priority = excluded.priority, rank = excluded.rank, run_at = excluded.run_at,
        created_at = excluded.created_at, started_at = excluded.started_at, finished_at = excluded.finished_at,
        expires_at = excluded.expires_at, attempt = excluded.attempt, errors = excluded.errors,
        crashes = excluded.crashes, lost = excluded.lost, token = excluded.token, node = excluded.node,
        alone = excluded.alone, cancelling = excluded.cancelling, unique_key = excluded.unique_key,
        slots = excluded.slots, depends_on = excluded.depends_on, options = excluded.options,
        payload = excluded.payload, unique_for = excluded.unique_for, waits = excluded.waits,
        has_children = excluded.has_children, parked = excluded.parked, result = excluded.result,
        progress = excluded.progress, attempts = excluded.attempts
)

SELECT id, task, queue, unique_key, has_children, parked, state FROM gone
