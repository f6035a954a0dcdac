UPDATE {schema}.jobs AS job SET progress = said.data
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[]) AS said (id, node, token, data)
WHERE job.id = said.id AND job.node = said.node AND job.token = said.token AND job.state = 'running'
RETURNING job.id, job.token
