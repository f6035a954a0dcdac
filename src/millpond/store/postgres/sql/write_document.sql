INSERT INTO {schema}.documents AS known (name, value, version)
SELECT $1::text, $2::bytea, 1
WHERE $3::bigint = 0 OR EXISTS (SELECT 1 FROM {schema}.documents WHERE name = $1)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, version = known.version + 1
WHERE known.version = $3::bigint
RETURNING version
