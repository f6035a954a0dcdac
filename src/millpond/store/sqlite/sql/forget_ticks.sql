DELETE FROM millpond_ticks
WHERE (recurring, at) IN (SELECT recurring, at FROM millpond_ticks WHERE planned_at < ?1 LIMIT ?2)
RETURNING 1
