SELECT id FROM millpond_jobs
WHERE
    id < ?3 AND id >= ?4
    AND {condition}
ORDER BY id DESC
LIMIT ?5
