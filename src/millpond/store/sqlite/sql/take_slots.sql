UPDATE millpond_slots SET used = used + ?2 WHERE name = ?1
