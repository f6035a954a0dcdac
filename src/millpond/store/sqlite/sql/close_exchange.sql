DELETE FROM millpond_exchanges WHERE node = ?1
