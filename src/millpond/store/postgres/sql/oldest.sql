-- A priority weighs a day, so those of one priority that are less than a day late stand together, the oldest
-- first. Only where some are later than that do priorities mix; the first hundred of each stretch are looked at.
SELECT wanted.queue, min(head.since)
FROM unnest($1::text[], $4::bigint[]) AS wanted (queue, floor)
CROSS JOIN generate_series(0, 10) AS step
CROSS JOIN LATERAL (
    SELECT min(first.run_at) AS since
    FROM (
        SELECT run_at FROM {schema}.jobs
        WHERE
            state = 'queued' AND parked IS NULL AND queue = wanted.queue AND rank >= wanted.floor
            AND rank > CASE WHEN step = 10 THEN -9e18::bigint ELSE $2::bigint - (step + 1) * $3::bigint END
            AND rank <= CASE WHEN step = 0 THEN 9e18::bigint ELSE $2::bigint - step * $3::bigint END
        ORDER BY rank, id
        LIMIT 100
    ) AS first
) AS head
GROUP BY wanted.queue
