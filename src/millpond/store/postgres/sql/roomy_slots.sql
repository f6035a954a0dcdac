-- The slots with room at which the best jobs of the queue are parked: one look at the index for each. One that another
-- transaction has locked is left out, and found by the next claim.
SELECT slot.name, slot.capacity - slot.used
FROM {schema}.slots AS slot
CROSS JOIN LATERAL (
    SELECT job.rank, job.id FROM {schema}.jobs AS job
    WHERE job.queue = $1 AND job.parked = slot.name AND NOT jsonb_exists($3::jsonb, job.task)
    ORDER BY job.rank, job.id
    LIMIT 1
) AS best
WHERE slot.parked > 0 AND slot.used < slot.capacity
ORDER BY best.rank, best.id
LIMIT $2
FOR UPDATE OF slot SKIP LOCKED
