INSERT INTO {schema}.graves (node, buried_at)
SELECT id, $2::bigint FROM {schema}.nodes WHERE id = $1
ON CONFLICT DO NOTHING
