-- Locks nothing that exists: DO UPDATE would lock the row of a key that is held until a caller's transaction ends,
-- and the job that holds the key could not end meanwhile.
INSERT INTO {schema}.uniques (task, unique_key, job, until)
SELECT task, unique_key, job, until
FROM unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[], $5::bigint[])
    AS wanted (task, unique_key, job, until, now)
ON CONFLICT (task, unique_key) DO NOTHING
RETURNING task, unique_key, job
