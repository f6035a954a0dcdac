-- Waiting and running ones in one look, each locked; what another transaction has locked is left to to_cancel_locked.
SELECT id, state FROM {schema}.jobs
WHERE
    state = ANY($1::text[]) AND NOT (state = 'running' AND cancelling)
    AND ($2::text IS NULL OR queue = $2)
    AND ($3::text IS NULL OR task = $3)
    AND id = ANY($4::uuid[])
ORDER BY id
FOR UPDATE SKIP LOCKED
