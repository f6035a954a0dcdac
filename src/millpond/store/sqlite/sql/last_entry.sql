SELECT coalesce(max(number), 0) FROM millpond_logs WHERE name = ?1
