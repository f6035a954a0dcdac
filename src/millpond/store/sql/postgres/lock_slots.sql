SELECT name, capacity - used FROM {schema}.slots WHERE name = ANY($1::text[]) ORDER BY name FOR UPDATE
