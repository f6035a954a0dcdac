UPDATE millpond_jobs
SET state = 'queued', reason = NULL, run_at = ?2, rank = ?2 - priority * ?3, errors = 0, crashes = 0, lost = 0,
    alone = 0, cancelling = 0, expires_at = NULL, finished_at = NULL, started_at = NULL, result = NULL
WHERE id = ?1 AND state = 'dead' AND reason <> 'damaged'
RETURNING id, 1
