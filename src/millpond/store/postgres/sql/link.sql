INSERT INTO {schema}.dependencies (parent, child)
SELECT * FROM unnest($1::uuid[], $2::uuid[])
ON CONFLICT DO NOTHING
