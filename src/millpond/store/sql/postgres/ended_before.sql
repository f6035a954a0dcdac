SELECT id FROM {schema}.history WHERE state = $1 AND finished_at <= $2 LIMIT $3
