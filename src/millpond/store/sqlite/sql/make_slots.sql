INSERT INTO millpond_slots (name, capacity, sized_at) VALUES (?1, ?2, ?3)
ON CONFLICT DO NOTHING
RETURNING name, capacity, used, parked, sized_at
