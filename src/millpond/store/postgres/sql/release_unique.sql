-- A key that lasts for a time outlives its job; the others go with it.
DELETE FROM {schema}.uniques AS held
USING unnest($1::text[], $2::text[], $3::uuid[]) AS gone (task, unique_key, job)
WHERE
    held.task = gone.task AND held.unique_key = gone.unique_key AND held.job = gone.job
    AND held.until IS NULL
