SELECT name, paused, rate FROM millpond_queues WHERE name IN (SELECT value FROM json_each(?1))
