DELETE FROM millpond_dependencies WHERE parent = ?1 AND child = ?2
