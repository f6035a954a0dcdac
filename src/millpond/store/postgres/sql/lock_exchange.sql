SELECT sequence, sealed FROM {schema}.exchanges WHERE node = $1 FOR UPDATE
