DELETE FROM millpond_logs WHERE name = ?1 AND number <= ?2
