SELECT {schema}.drop_day($1::bigint)
