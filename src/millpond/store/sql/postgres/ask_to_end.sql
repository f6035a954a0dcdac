UPDATE {schema}.jobs SET cancelling = TRUE
WHERE
    state = 'running' AND NOT cancelling
    AND ($1::text IS NULL OR queue = $1)
    AND ($2::text IS NULL OR task = $2)
    AND ($3::text[] IS NULL OR id = ANY($3))
RETURNING id
