SELECT id, token, cancelling, task, queue, unique_key, slots, has_children
FROM millpond_jobs
WHERE node = ?1 AND state = 'running' AND id IN (SELECT value FROM json_each(?2))
