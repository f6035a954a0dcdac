SELECT node FROM {schema}.graves WHERE node = $1
