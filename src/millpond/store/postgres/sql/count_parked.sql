WITH held AS MATERIALIZED (
    SELECT slot.name, more.number
    FROM {schema}.slots AS slot
    JOIN unnest($1::text[], $2::integer[]) AS more (name, number) ON slot.name = more.name
    ORDER BY slot.name
    FOR UPDATE OF slot
)

UPDATE {schema}.slots AS slot SET parked = slot.parked + held.number
FROM held
WHERE slot.name = held.name
