WITH due AS (
    UPDATE {schema}.jobs SET state = 'queued'
    WHERE id IN (
        SELECT id FROM {schema}.jobs
        WHERE state = 'scheduled' AND run_at <= $1
        ORDER BY run_at
        LIMIT 10000
        FOR UPDATE SKIP LOCKED
    )
    RETURNING queue
)

SELECT queue, count(*) FROM due GROUP BY queue
