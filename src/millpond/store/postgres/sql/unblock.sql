WITH stepped AS (
    UPDATE {schema}.jobs AS job
    SET waits = job.waits - done.number,
        state = CASE
            WHEN job.waits > done.number THEN job.state
            WHEN job.run_at > done.now THEN 'scheduled'
            ELSE 'queued'
        END
    FROM unnest($1::uuid[], $2::integer[], $3::bigint[]) AS done (id, number, now)
    WHERE job.id = done.id AND job.state = 'blocked'
    RETURNING job.queue, job.state
)

SELECT queue, state, count(*) FROM stepped GROUP BY queue, state
