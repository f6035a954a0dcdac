-- Where others wait for a slot, the queues of those who leave it are told: nearly always the same ones.
WITH room AS (
    UPDATE {schema}.slots AS slot SET used = slot.used - freed.number
    FROM unnest($2::text[], $3::integer[]) AS freed (name, number)
    WHERE slot.name = freed.name
    RETURNING slot.parked
)

SELECT count(pg_notify({channel}, queue))
FROM unnest(string_to_array($1::text, ' ')) AS told (queue)
WHERE EXISTS (SELECT FROM room WHERE parked > 0)
