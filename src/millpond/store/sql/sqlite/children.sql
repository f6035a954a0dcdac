SELECT child FROM millpond_dependencies WHERE parent IN (SELECT value FROM json_each(?1))
