UPDATE millpond_jobs SET cancelling = 1
WHERE
    state = 'running' AND cancelling = 0
    AND (?1 IS NULL OR queue = ?1)
    AND (?2 IS NULL OR task = ?2)
    AND (?3 IS NULL OR id IN (SELECT value FROM json_each(?3)))
RETURNING id
