INSERT INTO millpond_uniques (task, unique_key, job, until) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (task, unique_key) DO UPDATE SET job = ?3, until = ?4 WHERE until <= ?5
RETURNING task, unique_key, job
