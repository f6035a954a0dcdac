UPDATE {schema}.jobs AS job SET started_at = begun.now
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS begun (id, node, token, now)
WHERE job.id = begun.id AND job.node = begun.node AND job.token = begun.token AND job.state = 'running'
RETURNING job.id, job.token
