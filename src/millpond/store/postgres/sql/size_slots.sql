UPDATE {schema}.slots AS slot SET capacity = wanted.capacity, sized_at = wanted.sized_at
FROM unnest($1::text[], $2::integer[], $3::bigint[]) AS wanted (name, capacity, sized_at)
WHERE slot.name = wanted.name
