UPDATE millpond_slots SET capacity = ?2, sized_at = ?3 WHERE name = ?1
