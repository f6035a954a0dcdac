WITH held AS MATERIALIZED (
    SELECT job.place, said.data
    FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::bytea[]) AS said (id, node, token, data)
    CROSS JOIN LATERAL (
        SELECT ctid AS place FROM {schema}.jobs AS running
        WHERE
            running.id = said.id AND running.node = said.node AND running.token = said.token
            AND running.state = 'running'
        FOR UPDATE SKIP LOCKED
    ) AS job
)

UPDATE {schema}.jobs AS job SET progress = held.data
FROM held
WHERE job.ctid = held.place
RETURNING job.id, job.token
