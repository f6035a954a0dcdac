WITH due AS (
    UPDATE {schema}.jobs SET state = 'queued'
    WHERE id IN (
        SELECT id FROM {schema}.jobs
        WHERE state = 'scheduled' AND run_at <= $1 AND run_at >= $3::bigint
        ORDER BY run_at
        LIMIT $2
        FOR UPDATE SKIP LOCKED
    )
    RETURNING queue
)

SELECT queue, count(*) FROM due GROUP BY queue
