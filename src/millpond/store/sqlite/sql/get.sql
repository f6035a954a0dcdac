SELECT
    id, task, queue, state, reason, priority, rank, run_at, created_at, started_at, finished_at, expires_at,
    attempt, errors, crashes, lost, token, node, alone, cancelling, unique_key, slots, depends_on, options, payload,
    result, progress, attempts, parked
FROM millpond_jobs
WHERE id IN (SELECT value FROM json_each(?1))
