SELECT id, info FROM millpond_nodes WHERE lease_until > ?1 AND epoch = ?2
