SELECT
    id, task, queue, state, reason, priority, rank, run_at, created_at, started_at, finished_at, expires_at,
    attempt, errors, crashes, lost, token, node, alone, cancelling, unique_key, slots, depends_on, options, payload,
    unique_for
FROM millpond_jobs
WHERE state = 'queued' AND parked IS NULL AND queue = ?1
ORDER BY rank, id
LIMIT ?2
