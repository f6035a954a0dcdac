SELECT id, parked FROM millpond_jobs
WHERE
    expires_at IS NOT NULL AND state IN ('blocked', 'scheduled', 'queued')
    AND expires_at <= ?1
LIMIT ?2
