(
    SELECT
        id, task, queue, state, reason, priority, rank, run_at, created_at, started_at, finished_at, expires_at,
        attempt, errors, crashes, lost, token, node, alone, cancelling, unique_key, slots, depends_on, options, payload,
        result, progress, attempts, parked
    FROM {schema}.jobs
    WHERE
        ($1::text[] IS NULL OR state = ANY($1))
        AND ($2::text IS NULL OR queue = $2)
        AND ($3::text IS NULL OR task = $3)
        AND ($4::text[] IS NULL OR id = ANY($4))
        AND ($5::text IS NULL OR id < $5)
    ORDER BY id DESC
    LIMIT $6
)
UNION ALL
(
    SELECT
        id, task, queue, state, reason, priority, rank, run_at, created_at, started_at, finished_at, expires_at,
        attempt, errors, crashes, lost, token, node, alone, cancelling, unique_key, slots, depends_on, options, payload,
        result, progress, attempts, parked
    FROM {schema}.history
    WHERE
        ($1::text[] IS NULL OR state = ANY($1))
        AND ($2::text IS NULL OR queue = $2)
        AND ($3::text IS NULL OR task = $3)
        AND ($4::text[] IS NULL OR id = ANY($4))
        AND ($5::text IS NULL OR id < $5)
    ORDER BY id DESC
    LIMIT $6
)
ORDER BY id DESC
LIMIT $6
