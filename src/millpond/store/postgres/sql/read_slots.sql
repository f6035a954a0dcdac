SELECT name, capacity, used, parked, sized_at FROM {schema}.slots WHERE name = ANY($1::text[])
