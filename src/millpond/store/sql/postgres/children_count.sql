SELECT child, count(*) FROM {schema}.dependencies WHERE parent = ANY($1::text[]) GROUP BY child
