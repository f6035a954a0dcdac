DELETE FROM millpond_statistics WHERE minute < ?1
