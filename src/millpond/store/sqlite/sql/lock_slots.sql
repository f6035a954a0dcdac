SELECT name, capacity, used, parked, sized_at FROM millpond_slots WHERE name IN (SELECT value FROM json_each(?1))
