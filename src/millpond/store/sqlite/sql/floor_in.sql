SELECT id FROM millpond_jobs WHERE {condition} AND id < ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2
