SELECT
    wanted.value, coalesce(queue.paused, 0), queue.rate,
    EXISTS (
        SELECT 1 FROM millpond_jobs
        WHERE
            expires_at IS NOT NULL AND state IN ('blocked', 'scheduled', 'queued')
            AND expires_at <= ?2
    ),
    EXISTS (SELECT 1 FROM millpond_jobs WHERE state = 'scheduled' AND run_at <= ?2),
    EXISTS (SELECT 1 FROM millpond_slots WHERE parked > 0 AND used < capacity),
    EXISTS (SELECT 1 FROM millpond_cascades),
    EXISTS (SELECT 1 FROM millpond_jobs WHERE node = ?3 AND cancelling = 1 AND state = 'running'),
    EXISTS (SELECT 1 FROM millpond_jobs WHERE state = 'queued' AND parked IS NULL AND queue = wanted.value)
FROM json_each(?1) AS wanted
LEFT JOIN millpond_queues AS queue ON wanted.value = queue.name
