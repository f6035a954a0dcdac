UPDATE millpond_jobs SET cancelling = 1
WHERE id IN (SELECT value FROM json_each(?1)) AND state = 'running' AND cancelling = 0
RETURNING id
