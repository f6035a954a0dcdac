-- From the newest on, by the primary key and no other index; where no state of a table is asked for, it is left out.
(
    SELECT id
    FROM (
        SELECT id, state, queue, task FROM {schema}.jobs
        WHERE id < $4::uuid AND id >= $5::uuid AND ($1::text[] IS NULL OR $1 && ARRAY['blocked', 'scheduled', 'queued', 'running'])
        ORDER BY id DESC
        LIMIT $7
    ) AS seen
    WHERE
        ($1::text[] IS NULL OR state = ANY($1))
        AND ($2::text IS NULL OR queue = $2)
        AND ($3::text IS NULL OR task = $3)
    LIMIT $6
)
UNION ALL
(
    SELECT id
    FROM (
        SELECT id, state, queue, task FROM {schema}.history
        WHERE id < $4::uuid AND id >= $5::uuid AND ($1::text[] IS NULL OR $1 && ARRAY['completed', 'dead', 'cancelled'])
        ORDER BY id DESC
        LIMIT $7
    ) AS seen
    WHERE
        ($1::text[] IS NULL OR state = ANY($1))
        AND ($2::text IS NULL OR queue = $2)
        AND ($3::text IS NULL OR task = $3)
    LIMIT $6
)
ORDER BY id DESC
LIMIT $6
