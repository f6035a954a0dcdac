SELECT
    id, task, queue, state, NULL, priority, rank, run_at, created_at, started_at, NULL, expires_at,
    attempt, errors, crashes, lost, token, node, alone, cancelling, unique_key, slots, depends_on, options, payload,
    unique_for
FROM {schema}.jobs
WHERE state = 'queued' AND parked IS NULL AND queue = $1 AND rank >= $4::bigint AND task <> ALL($3::text[])
ORDER BY rank, id
LIMIT $2
FOR UPDATE SKIP LOCKED
