SELECT id FROM millpond_jobs WHERE state = ?1 AND finished_at IS NOT NULL AND finished_at <= ?2 LIMIT ?3
