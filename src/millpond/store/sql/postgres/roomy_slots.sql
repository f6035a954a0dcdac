-- The limit inside makes it one look at the index for each slot, never a join over all that is parked.
SELECT slot.name, slot.capacity - slot.used
FROM {schema}.slots AS slot
CROSS JOIN LATERAL (
    SELECT 1 FROM {schema}.jobs AS job WHERE job.queue = $1 AND job.parked = slot.name LIMIT 1
) AS waiting
WHERE slot.parked > 0 AND slot.used < slot.capacity
ORDER BY slot.name
FOR UPDATE OF slot
