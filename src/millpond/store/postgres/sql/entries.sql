SELECT number, at, data FROM {schema}.logs WHERE name = $1 AND number > $2 ORDER BY number LIMIT $3
