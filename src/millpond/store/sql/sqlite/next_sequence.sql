UPDATE millpond_nodes SET sequence = ?2 WHERE id = ?1 AND sealed = 0 AND sequence < ?2 RETURNING sequence
