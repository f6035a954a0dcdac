SELECT id FROM {schema}.history
WHERE
    state = 'dead' AND id < $3::uuid AND id >= $4::uuid
    AND ($1::text IS NULL OR queue = $1)
    AND ($2::text IS NULL OR task = $2)
ORDER BY id DESC
LIMIT $5
