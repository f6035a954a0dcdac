DELETE FROM millpond_nodes WHERE id = ?1
