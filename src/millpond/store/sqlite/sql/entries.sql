SELECT number, at, data FROM millpond_logs WHERE name = ?1 AND number > ?2 ORDER BY number LIMIT ?3
