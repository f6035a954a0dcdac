SELECT id FROM millpond_jobs WHERE node = ?1 AND state = 'running' AND cancelling = 1
