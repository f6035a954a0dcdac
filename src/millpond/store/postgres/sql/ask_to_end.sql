UPDATE {schema}.jobs SET cancelling = TRUE
WHERE id = ANY($1::uuid[]) AND state = 'running' AND NOT cancelling
RETURNING id
