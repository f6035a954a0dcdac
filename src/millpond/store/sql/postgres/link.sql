INSERT INTO {schema}.dependencies (parent, child)
SELECT * FROM unnest($1::text[], $2::text[])
ON CONFLICT DO NOTHING
