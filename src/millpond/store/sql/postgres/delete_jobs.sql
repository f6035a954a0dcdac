DELETE FROM {schema}.history WHERE id = ANY($1::text[])
