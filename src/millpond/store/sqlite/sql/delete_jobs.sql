DELETE FROM millpond_jobs WHERE id IN (SELECT value FROM json_each(?1))
RETURNING queue, state, 1
