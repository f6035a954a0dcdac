-- Keys that lasted for a time that is over. The job that had one never releases it, so no end waits for this lock.
UPDATE {schema}.uniques AS held SET job = wanted.job, until = wanted.until
FROM unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[], $5::bigint[])
    AS wanted (task, unique_key, job, until, now)
WHERE held.task = wanted.task AND held.unique_key = wanted.unique_key AND held.until <= wanted.now
RETURNING held.task, held.unique_key, held.job
