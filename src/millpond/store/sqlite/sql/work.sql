-- Is there anything in one of these queues that a claim would look at?
SELECT EXISTS (SELECT 1 FROM millpond_cascades) OR EXISTS (
    SELECT 1 FROM json_each(?1) AS wanted
    WHERE
        NOT EXISTS (SELECT 1 FROM millpond_queues WHERE millpond_queues.name = wanted.value AND millpond_queues.paused)
        AND (
            EXISTS (SELECT 1 FROM millpond_jobs WHERE queue = wanted.value AND state = 'queued' AND parked IS NULL)
            OR EXISTS (SELECT 1 FROM millpond_jobs WHERE queue = wanted.value AND state = 'scheduled' AND run_at <= ?2)
            OR EXISTS (
                SELECT 1 FROM millpond_slots
                WHERE
                    millpond_slots.parked > 0
                    AND millpond_slots.used < millpond_slots.capacity
                    AND EXISTS (
                        SELECT 1 FROM millpond_jobs
                        WHERE millpond_jobs.parked = millpond_slots.name AND millpond_jobs.queue = wanted.value
                    )
            )
        )
)
