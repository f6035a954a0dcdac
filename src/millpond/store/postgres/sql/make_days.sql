SELECT {schema}.make_days($1::bigint, $2::integer)
