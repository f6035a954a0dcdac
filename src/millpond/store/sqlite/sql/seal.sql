UPDATE millpond_exchanges SET sealed = 1 WHERE node = ?1
