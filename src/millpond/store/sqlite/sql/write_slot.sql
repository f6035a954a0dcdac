INSERT INTO millpond_slots (name, capacity, sized_at) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET capacity = ?2, sized_at = ?3
