-- Only what has ended is ever chosen, and that is in the history alone.
SELECT id FROM {schema}.history
WHERE
    state = ANY($1::text[])
    AND ($2::text IS NULL OR queue = $2)
    AND ($3::text IS NULL OR task = $3)
    AND id = ANY($4::uuid[])
