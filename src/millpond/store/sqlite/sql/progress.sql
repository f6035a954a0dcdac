UPDATE millpond_jobs SET progress = ?4
WHERE id = ?1 AND node = ?2 AND token = ?3 AND state = 'running'
RETURNING id, token
