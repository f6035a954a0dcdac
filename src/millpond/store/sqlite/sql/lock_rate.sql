SELECT rate, tokens, filled_at FROM millpond_queues WHERE name = ?1
