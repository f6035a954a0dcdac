UPDATE millpond_jobs SET state = 'cancelled', reason = ?2, finished_at = ?3
WHERE id = ?1 AND state IN ('blocked', 'scheduled', 'queued')
