UPDATE millpond_exchanges SET sequence = ?2 WHERE node = ?1 AND sealed = 0 AND sequence < ?2 RETURNING sequence
