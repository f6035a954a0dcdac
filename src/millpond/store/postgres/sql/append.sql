INSERT INTO {schema}.logs (name, number, at, data)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bytea[])
