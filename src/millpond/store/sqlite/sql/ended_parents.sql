SELECT id, state FROM millpond_jobs WHERE id IN (SELECT value FROM json_each(?1))
