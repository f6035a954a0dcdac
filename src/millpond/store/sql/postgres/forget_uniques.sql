DELETE FROM {schema}.uniques WHERE until IS NOT NULL AND until <= $1
