DELETE FROM {schema}.tallies WHERE minute = 0 AND number = 0
