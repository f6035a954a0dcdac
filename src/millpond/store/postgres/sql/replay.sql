WITH gone AS (
    DELETE FROM {schema}.history AS job
    USING unnest($1::uuid[], $2::bigint[], $3::bigint[]) AS again (id, now, day)
    WHERE job.id = again.id AND job.state = 'dead' AND job.reason <> 'damaged'
    RETURNING job.*, again.now, again.day
),

revived AS (
    INSERT INTO {schema}.jobs (
        id, task, queue, state, priority, rank, run_at, created_at, attempt, token, unique_key, unique_for, slots,
        depends_on, has_children, options, payload, progress, attempts
    )
    SELECT
        id, task, queue, 'queued', priority, now - priority * day, now, created_at, attempt, token, unique_key,
        unique_for, slots, depends_on, has_children, options, payload, progress, attempts
    FROM gone
    ON CONFLICT (id) DO NOTHING -- the one that has not ended is the one that goes on
    RETURNING id, queue
)

SELECT id, id IN (SELECT revived.id FROM revived) FROM gone
