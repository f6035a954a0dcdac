-- The states are written into the statement, so that the partial indexes apply.
SELECT id, state FROM millpond_jobs
WHERE
    state IN ({states}) AND NOT (state = 'running' AND cancelling = 1)
    AND {condition}
ORDER BY id
LIMIT ?4
