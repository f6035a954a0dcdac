DELETE FROM {schema}.logs WHERE name = $1 AND number <= $2
