UPDATE {schema}.jobs AS job
SET state = 'running', node = ours.node, token = job.token + 1, started_at = NULL
FROM unnest($1::uuid[], $2::text[]) AS ours (id, node)
WHERE job.id = ours.id
