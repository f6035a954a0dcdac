-- By the indexes of their states, each of which has few: sorted, they are still few.
SELECT id FROM millpond_jobs
WHERE
    seq IN ({places})
    AND +id < ?3
    AND {condition}
ORDER BY +id DESC
LIMIT ?4
