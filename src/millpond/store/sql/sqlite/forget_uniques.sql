DELETE FROM millpond_uniques WHERE until IS NOT NULL AND until <= ?1
