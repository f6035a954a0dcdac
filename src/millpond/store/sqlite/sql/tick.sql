INSERT INTO millpond_ticks (recurring, at, job, planned_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO NOTHING
RETURNING recurring, at
