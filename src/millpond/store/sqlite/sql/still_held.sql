SELECT id, token FROM millpond_jobs WHERE node = ?1 AND state = 'running' AND id IN (SELECT value FROM json_each(?2))
