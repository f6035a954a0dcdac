-- State by state, each of which has few: the partial indexes find them.
WITH found AS MATERIALIZED (
    SELECT id, queue, task FROM {schema}.jobs WHERE state = 'blocked' AND 'blocked' = ANY($1)
    UNION ALL
    SELECT id, queue, task FROM {schema}.jobs WHERE state = 'scheduled' AND 'scheduled' = ANY($1)
    UNION ALL
    SELECT id, queue, task FROM {schema}.jobs WHERE state = 'queued' AND 'queued' = ANY($1)
    UNION ALL
    SELECT id, queue, task FROM {schema}.jobs WHERE state = 'running' AND 'running' = ANY($1)
    UNION ALL
    SELECT id, queue, task FROM {schema}.history WHERE state = ANY($1::text[])
)

SELECT id FROM found
WHERE
    id < $4::uuid
    AND ($2::text IS NULL OR queue = $2)
    AND ($3::text IS NULL OR task = $3)
ORDER BY id DESC
LIMIT $5
