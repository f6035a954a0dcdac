DELETE FROM millpond_ticks WHERE planned_at < ?1
