UPDATE millpond_slots SET used = used - ?3 WHERE name = ?2
