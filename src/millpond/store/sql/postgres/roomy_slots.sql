SELECT slot.name, slot.capacity - slot.used
FROM {schema}.slots AS slot
WHERE
    slot.parked > 0 AND slot.used < slot.capacity
    AND EXISTS (SELECT 1 FROM {schema}.jobs AS job WHERE job.parked = slot.name AND job.queue = $1)
ORDER BY slot.name
FOR UPDATE
