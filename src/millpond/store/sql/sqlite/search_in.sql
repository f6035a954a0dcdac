SELECT
    id, task, queue, state, reason, priority, rank, run_at, created_at, started_at, finished_at, expires_at,
    attempt, errors, crashes, lost, token, node, alone, cancelling, unique_key, slots, depends_on, options, payload,
    result, progress, attempts, parked
FROM millpond_jobs
WHERE
    {condition}
    AND (?1 IS NULL OR queue = ?1)
    AND (?2 IS NULL OR task = ?2)
    AND (?3 IS NULL OR id IN (SELECT value FROM json_each(?3)))
    AND (?4 IS NULL OR id < ?4)
ORDER BY id DESC
LIMIT ?5
