SELECT id, info FROM {schema}.nodes WHERE lease_until > $1
