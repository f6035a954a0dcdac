WITH written AS (
    INSERT INTO {schema}.slots AS known (name, capacity) VALUES ($1, $2)
    ON CONFLICT (name) DO UPDATE SET capacity = $2
    RETURNING known.name, known.parked
)

SELECT count(pg_notify({channel}, queue))
FROM (
    SELECT DISTINCT job.queue
    FROM written
    JOIN {schema}.jobs AS job ON job.parked = written.name
    WHERE written.parked > 0
) AS told
