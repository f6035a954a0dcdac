UPDATE {schema}.slots AS slot SET used = slot.used + taken.number
FROM unnest($1::text[], $2::integer[]) AS taken (name, number)
WHERE slot.name = taken.name
