DELETE FROM {schema}.nodes WHERE id = $1
