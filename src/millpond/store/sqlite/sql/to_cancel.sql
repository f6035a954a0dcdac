SELECT id, state FROM millpond_jobs
WHERE
    id IN (SELECT value FROM json_each(?4))
    AND state IN (SELECT value FROM json_each(?1)) AND NOT (state = 'running' AND cancelling = 1)
    AND (?2 IS NULL OR queue = ?2)
    AND (?3 IS NULL OR task = ?3)
ORDER BY id
