SELECT child FROM {schema}.dependencies WHERE parent = ANY($1::text[])
