SELECT coalesce(max(number), 0) FROM {schema}.logs WHERE name = $1
