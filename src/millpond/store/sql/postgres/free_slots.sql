UPDATE {schema}.slots AS slot SET used = slot.used - freed.number
FROM unnest($1::text[], $2::integer[]) AS freed (name, number)
WHERE slot.name = freed.name
