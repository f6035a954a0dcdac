DELETE FROM {schema}.exchanges WHERE node = $1
