-- The states are written into the statement, so that the partial indexes apply.
SELECT id FROM millpond_jobs
WHERE
    state IN ({states})
    AND {condition}
ORDER BY id
LIMIT ?4
