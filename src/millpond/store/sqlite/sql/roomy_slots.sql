SELECT roomy.name, roomy.free
FROM (
    SELECT
        slot.name, slot.capacity - slot.used AS free,
        (
            SELECT job.seq FROM millpond_jobs AS job
            WHERE
                job.queue = ?1 AND job.parked = slot.name
                AND job.task NOT IN (SELECT value FROM json_each(?3))
            ORDER BY job.rank, job.id
            LIMIT 1
        ) AS seq
    FROM millpond_slots AS slot
    WHERE slot.parked > 0 AND slot.used < slot.capacity
) AS roomy
JOIN millpond_jobs AS best ON best.seq = roomy.seq
ORDER BY best.rank, best.id
LIMIT ?2
