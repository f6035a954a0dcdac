-- A priority weighs a day, so those of one priority that are less than a day late stand together, the oldest
-- first. Only where some are later than that do priorities mix; the first hundred of each stretch are looked at.
WITH RECURSIVE steps (step) AS (SELECT 0 UNION ALL SELECT step + 1 FROM steps WHERE step < 10)

SELECT
    wanted.value,
    min((
        SELECT min(run_at)
        FROM (
            SELECT run_at FROM millpond_jobs
            WHERE
                state = 'queued' AND parked IS NULL AND queue = wanted.value
                AND rank > CASE WHEN step = 10 THEN -9e18 ELSE ?2 - (step + 1) * ?3 END
                AND rank <= CASE WHEN step = 0 THEN 9e18 ELSE ?2 - step * ?3 END
            ORDER BY rank, id
            LIMIT 100
        )
    )) AS since
FROM json_each(?1) AS wanted CROSS JOIN steps
GROUP BY wanted.value
