UPDATE millpond_jobs
SET waits = waits - ?2,
    state = CASE WHEN waits > ?2 THEN state WHEN run_at > ?3 THEN 'scheduled' ELSE 'queued' END
WHERE id = ?1 AND state = 'blocked'
RETURNING queue, state, 1
