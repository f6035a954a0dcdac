SELECT id, token, cancelling, task, queue, unique_key, slots, has_children
FROM {schema}.jobs
WHERE node = $1 AND state = 'running' AND id = ANY($2::text[])
FOR UPDATE
