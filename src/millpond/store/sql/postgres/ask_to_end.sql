UPDATE {schema}.jobs SET cancelling = TRUE
WHERE id = ANY($1::text[]) AND state = 'running' AND NOT cancelling
RETURNING id
