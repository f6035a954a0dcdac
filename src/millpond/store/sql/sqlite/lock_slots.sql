SELECT name, capacity - used FROM millpond_slots WHERE name IN (SELECT value FROM json_each(?1))
