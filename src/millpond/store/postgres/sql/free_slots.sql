-- In the order of the names, as every transaction that waits for slots takes them. Claims never wait for one, so the
-- wait here is for a transaction that itself waits for no slot.
WITH held AS MATERIALIZED (
    SELECT slot.name, freed.number
    FROM {schema}.slots AS slot
    JOIN unnest($1::text[], $2::integer[]) AS freed (name, number) ON slot.name = freed.name
    ORDER BY slot.name
    FOR UPDATE OF slot
)

UPDATE {schema}.slots AS slot SET used = slot.used - held.number
FROM held
WHERE slot.name = held.name
RETURNING slot.parked > 0
