SELECT sequence, sealed FROM {schema}.exchanges WHERE ctid = $2::tid AND node = $1
