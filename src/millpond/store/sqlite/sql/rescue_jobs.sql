SELECT
    id, task, queue, state, reason, priority, rank, run_at, created_at, started_at, finished_at, expires_at,
    attempt, errors, crashes, lost, token, node, alone, cancelling, unique_key, slots, depends_on, options, payload, has_children
FROM millpond_jobs
WHERE state = 'running' AND node = ?1
ORDER BY id
LIMIT ?2
