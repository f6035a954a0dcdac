DELETE FROM millpond_minutes WHERE minute < ?1
