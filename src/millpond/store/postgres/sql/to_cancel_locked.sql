-- What to_cancel passed over: each is waited for, so none slips through by being claimed or going back in line.
SELECT id, state FROM {schema}.jobs
WHERE
    state = ANY($1::text[]) AND NOT (state = 'running' AND cancelling)
    AND ($2::text IS NULL OR queue = $2)
    AND ($3::text IS NULL OR task = $3)
    AND id = ANY($4::uuid[])
ORDER BY id
FOR UPDATE
