-- A new rate begins with a full bucket: one second's worth, and at least one job.
INSERT INTO {schema}.queues AS known (name, paused, rate, tokens, filled_at)
VALUES (
    $1, coalesce($2::boolean, FALSE), $4::double precision, greatest(1.0, coalesce($4::double precision, 0)),
    $5::bigint
)
ON CONFLICT (name) DO UPDATE SET
    paused = coalesce($2::boolean, known.paused),
    rate = CASE WHEN $3::boolean THEN $4::double precision ELSE known.rate END,
    tokens = CASE WHEN $3::boolean THEN excluded.tokens ELSE known.tokens END,
    filled_at = CASE WHEN $3::boolean THEN $5::bigint ELSE known.filled_at END
RETURNING paused
