INSERT INTO {schema}.ticks (recurring, at, job, planned_at)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::uuid[], $4::bigint[])
ON CONFLICT DO NOTHING
RETURNING recurring, at
