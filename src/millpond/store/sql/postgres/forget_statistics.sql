DELETE FROM {schema}.minutes WHERE minute < $1
