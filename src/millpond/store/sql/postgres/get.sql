SELECT
    id, task, queue, state, reason, priority, rank, run_at, created_at, started_at, finished_at, expires_at,
    attempt, errors, crashes, lost, token, node, alone, cancelling, unique_key, slots, depends_on, options, payload,
    result, progress, attempts, parked
FROM {schema}.jobs
WHERE id = ANY($1::text[])
UNION ALL
SELECT
    id, task, queue, state, reason, priority, rank, run_at, created_at, started_at, finished_at, expires_at,
    attempt, errors, crashes, lost, token, node, alone, cancelling, unique_key, slots, depends_on, options, payload,
    result, progress, attempts, parked
FROM {schema}.history
WHERE id = ANY($1::text[])
