DELETE FROM millpond_graves WHERE buried_at < ?1
