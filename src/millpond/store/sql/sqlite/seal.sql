UPDATE millpond_nodes SET sealed = 1 WHERE id = ?1
