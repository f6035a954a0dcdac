INSERT INTO {schema}.uniques AS held (task, unique_key, job, until)
SELECT task, unique_key, job, until
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])
    AS wanted (task, unique_key, job, until, now)
ON CONFLICT (task, unique_key) DO UPDATE SET job = excluded.job, until = excluded.until
WHERE held.until <= ($5::bigint[])[1]
RETURNING task, unique_key, job
