SELECT name, paused, rate FROM {schema}.queues WHERE name = ANY($1::text[])
