-- The first few at each slot, of the first thousand slots that somebody waits for.
SELECT
    wanted.value,
    min((
        SELECT min(run_at)
        FROM (
            SELECT run_at FROM millpond_jobs
            WHERE queue = wanted.value AND parked = slot.name AND state = 'queued'
            ORDER BY rank, id
            LIMIT 10
        )
    )) AS since
FROM
    json_each(?1) AS wanted
    CROSS JOIN (SELECT name FROM millpond_slots WHERE parked > 0 ORDER BY name LIMIT 1000) AS slot
GROUP BY wanted.value
