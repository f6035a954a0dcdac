SELECT value, version FROM {schema}.documents WHERE name = $1
