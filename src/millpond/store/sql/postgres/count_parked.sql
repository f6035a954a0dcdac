UPDATE {schema}.slots AS slot SET parked = slot.parked + more.number
FROM unnest($1::text[], $2::integer[]) AS more (name, number)
WHERE slot.name = more.name
