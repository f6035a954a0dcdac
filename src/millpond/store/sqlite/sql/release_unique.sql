-- A key that lasts for a time outlives its job; the others go with it.
DELETE FROM millpond_uniques WHERE task = ?1 AND unique_key = ?2 AND job = ?3 AND until IS NULL
