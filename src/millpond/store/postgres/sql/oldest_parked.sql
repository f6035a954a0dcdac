-- The first few at each slot, of the first thousand slots that somebody waits for.
SELECT wanted.queue, min(head.since)
FROM unnest($1::text[]) AS wanted (queue)
CROSS JOIN (SELECT name FROM {schema}.slots WHERE parked > 0 ORDER BY name LIMIT 1000) AS slot
CROSS JOIN LATERAL (
    SELECT min(first.run_at) AS since
    FROM (
        SELECT run_at FROM {schema}.jobs
        WHERE queue = wanted.queue AND parked = slot.name AND state = 'queued'
        ORDER BY rank, id
        LIMIT 10
    ) AS first
) AS head
GROUP BY wanted.queue
