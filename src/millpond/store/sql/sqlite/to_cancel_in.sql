-- The states are written into the statement, so that the partial indexes apply.
SELECT id, state FROM millpond_jobs
WHERE
    state IN ({states}) AND NOT (state = 'running' AND cancelling = 1)
    AND (?1 IS NULL OR queue = ?1)
    AND (?2 IS NULL OR task = ?2)
    AND (?3 IS NULL OR id IN (SELECT value FROM json_each(?3)))
ORDER BY id
LIMIT ?4
