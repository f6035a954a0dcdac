SELECT id FROM {schema}.jobs
WHERE expires_at IS NOT NULL AND state IN ('blocked', 'scheduled', 'queued') AND expires_at <= $1
LIMIT 1000
FOR UPDATE SKIP LOCKED
