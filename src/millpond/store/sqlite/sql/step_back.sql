UPDATE millpond_jobs SET parked = NULL
WHERE seq IN (
    SELECT seq FROM millpond_jobs
    WHERE parked = ?1 AND queue = ?2 AND task NOT IN (SELECT value FROM json_each(?4))
    ORDER BY rank, id
    LIMIT ?3
)
RETURNING id, ?1
