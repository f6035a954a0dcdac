DELETE FROM millpond_uniques
WHERE (task, unique_key) IN (SELECT task, unique_key FROM millpond_uniques WHERE until IS NOT NULL AND until <= ?1 LIMIT ?2)
RETURNING 1
