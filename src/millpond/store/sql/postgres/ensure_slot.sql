INSERT INTO {schema}.slots (name, capacity)
SELECT * FROM unnest($1::text[], $2::integer[])
ON CONFLICT (name) DO UPDATE SET capacity = excluded.capacity
RETURNING name, capacity, used, parked
