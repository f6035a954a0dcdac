SELECT millpond_slots.name, millpond_slots.capacity - millpond_slots.used
FROM millpond_slots
WHERE
    millpond_slots.parked > 0
    AND millpond_slots.used < millpond_slots.capacity
    AND EXISTS (SELECT 1 FROM millpond_jobs WHERE millpond_jobs.parked = millpond_slots.name AND millpond_jobs.queue = ?1)
ORDER BY millpond_slots.name
