SELECT held.task, held.unique_key, held.job
FROM {schema}.uniques AS held
JOIN unnest($1::text[], $2::text[]) AS wanted (task, unique_key) USING (task, unique_key)
