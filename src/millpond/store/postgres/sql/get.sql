SELECT
    id, task, queue, state, NULL, priority, rank, run_at, created_at, started_at, NULL, expires_at,
    attempt, errors, crashes, lost, token, node, alone, cancelling, unique_key, slots, depends_on, options, payload,
    NULL, progress, attempts, parked
FROM {schema}.jobs
WHERE id = ANY($1::uuid[])
UNION ALL
SELECT
    id, task, queue, state, reason, priority, rank, run_at, created_at, started_at, finished_at, expires_at,
    attempt, errors, crashes, lost, token, NULL, alone, FALSE, unique_key, slots, depends_on, options, payload,
    result, progress, attempts, NULL
FROM {schema}.history
WHERE id = ANY($1::uuid[])
ORDER BY 11 -- the last one counts, should an id be there twice
