UPDATE millpond_jobs SET state = 'running', node = ?2, token = token + 1, started_at = NULL
WHERE id = ?1
