DELETE FROM millpond_cascades WHERE parent IN (SELECT value FROM json_each(?1))
