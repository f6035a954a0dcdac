UPDATE {schema}.queues SET tokens = $2, filled_at = $3 WHERE name = $1
