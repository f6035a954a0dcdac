SELECT id FROM millpond_jobs WHERE state = 'running' AND node = ?1 LIMIT 1
