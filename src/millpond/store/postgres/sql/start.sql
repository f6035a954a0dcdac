WITH held AS MATERIALIZED (
    SELECT job.place, begun.now
    FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::bigint[]) AS begun (id, node, token, now)
    CROSS JOIN LATERAL (
        SELECT ctid AS place FROM {schema}.jobs AS running
        WHERE
            running.id = begun.id AND running.node = begun.node AND running.token = begun.token
            AND running.state = 'running'
        FOR UPDATE SKIP LOCKED
    ) AS job
)

UPDATE {schema}.jobs AS job SET started_at = held.now
FROM held
WHERE job.ctid = held.place
RETURNING job.id, job.token
