UPDATE millpond_jobs SET parked = NULL WHERE id = ?1
