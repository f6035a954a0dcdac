UPDATE millpond_jobs SET state = 'queued'
WHERE seq IN (
    SELECT seq FROM millpond_jobs WHERE state = 'scheduled' AND run_at <= ?1 ORDER BY run_at LIMIT ?2
)
RETURNING queue, 1
