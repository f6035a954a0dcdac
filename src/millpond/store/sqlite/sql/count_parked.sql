UPDATE millpond_slots SET parked = parked + ?2 WHERE name = ?1
