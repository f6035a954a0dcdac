SELECT sequence, sealed FROM millpond_exchanges WHERE node = ?1
