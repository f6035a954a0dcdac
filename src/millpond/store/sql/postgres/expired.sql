SELECT id FROM {schema}.jobs
WHERE expires_at IS NOT NULL AND state <> 'running' AND expires_at <= $1
LIMIT 1000
FOR UPDATE SKIP LOCKED
