UPDATE millpond_uniques SET job = ?3, until = ?4
WHERE task = ?1 AND unique_key = ?2 AND until <= ?5
RETURNING task, unique_key, job
