SELECT id, state FROM {schema}.history WHERE id = ANY($1::uuid[])
