DELETE FROM millpond_slots
WHERE name IN (SELECT name FROM millpond_slots WHERE used = 0 AND parked = 0 AND sized_at < ?1 LIMIT ?2)
RETURNING name
