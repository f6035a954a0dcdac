INSERT INTO millpond_uniques (task, unique_key, job, until)
SELECT ?1, ?2, ?3, ?4 WHERE ?5 IS NOT NULL
ON CONFLICT (task, unique_key) DO NOTHING
RETURNING task, unique_key, job
