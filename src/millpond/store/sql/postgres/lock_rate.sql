SELECT rate, tokens, filled_at FROM {schema}.queues WHERE name = $1 FOR UPDATE
