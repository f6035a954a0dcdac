INSERT INTO millpond_slots (name, capacity) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET capacity = ?2
RETURNING name, capacity, used, parked
