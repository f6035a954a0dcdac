SELECT id, parked FROM {schema}.jobs
WHERE
    expires_at IS NOT NULL AND state IN ('blocked', 'scheduled', 'queued')
    AND expires_at <= $1 AND expires_at >= $3::bigint
LIMIT $2
FOR UPDATE SKIP LOCKED
