SELECT id FROM {schema}.history
WHERE state = 'dead' AND $1::text[] IS NOT NULL AND id < $2::uuid
ORDER BY id DESC
LIMIT 1 OFFSET $3
