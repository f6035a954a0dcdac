-- A job that another transaction has locked is left to the next rescue.
SELECT
    id, task, queue, state, NULL, priority, rank, run_at, created_at, started_at, NULL, expires_at,
    attempt, errors, crashes, lost, token, node, alone, cancelling, unique_key, slots, depends_on, options, payload, has_children
FROM {schema}.jobs
WHERE state = 'running' AND node = $1
ORDER BY id
LIMIT $2
FOR UPDATE SKIP LOCKED
