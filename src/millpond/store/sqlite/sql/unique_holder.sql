SELECT task, unique_key, job FROM millpond_uniques WHERE task = ?1 AND unique_key = ?2
