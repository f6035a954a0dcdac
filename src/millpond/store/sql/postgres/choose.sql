(
    SELECT id FROM {schema}.jobs
    WHERE
        state = ANY($1::text[])
        AND ($2::text IS NULL OR queue = $2)
        AND ($3::text IS NULL OR task = $3)
        AND ($4::text[] IS NULL OR id = ANY($4))
    ORDER BY id
    LIMIT $5
)
UNION ALL
(
    SELECT id FROM {schema}.history
    WHERE
        state = ANY($1::text[])
        AND ($2::text IS NULL OR queue = $2)
        AND ($3::text IS NULL OR task = $3)
        AND ($4::text[] IS NULL OR id = ANY($4))
    ORDER BY id
    LIMIT $5
)
ORDER BY id
LIMIT $5
