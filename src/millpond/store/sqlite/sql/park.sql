UPDATE millpond_jobs SET parked = ?2 WHERE id = ?1
