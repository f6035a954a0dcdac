UPDATE {schema}.exchanges SET sealed = TRUE WHERE node = $1
