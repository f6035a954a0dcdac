WITH written AS (
    INSERT INTO {schema}.slots AS known (name, capacity, sized_at) VALUES ($1, $2, $3)
    ON CONFLICT (name) DO UPDATE SET capacity = $2, sized_at = $3
    RETURNING known.name, known.parked
)

SELECT DISTINCT job.queue
FROM written
JOIN {schema}.jobs AS job ON job.parked = written.name
WHERE written.parked > 0
