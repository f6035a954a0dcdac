SELECT greatest(
    (
        SELECT id FROM {schema}.jobs
        WHERE id < $2::uuid AND ($1::text[] IS NULL OR $1 && ARRAY['blocked', 'scheduled', 'queued', 'running'])
        ORDER BY id DESC
        LIMIT 1 OFFSET $3
    ),
    (
        SELECT id FROM {schema}.history
        WHERE id < $2::uuid AND ($1::text[] IS NULL OR $1 && ARRAY['completed', 'dead', 'cancelled'])
        ORDER BY id DESC
        LIMIT 1 OFFSET $3
    )
)
