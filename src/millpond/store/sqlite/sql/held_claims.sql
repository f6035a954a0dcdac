SELECT id, token, queue, task FROM millpond_jobs WHERE state = 'running' AND node = ?1 ORDER BY id
