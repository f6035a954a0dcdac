UPDATE {schema}.nodes SET sealed = TRUE WHERE id = $1
