SELECT {schema}.lock_day($1::bigint)
