-- By the places of rows that are locked already: nobody can move them meanwhile.
WITH head AS MATERIALIZED (
    SELECT ctid AS place, rank, id, slots
    FROM {schema}.jobs
    WHERE state = 'queued' AND parked IS NULL AND queue = $1 AND rank >= $4::bigint
    ORDER BY rank, id
    LIMIT $2
    FOR UPDATE SKIP LOCKED
),

seen AS (
    SELECT place, bool_or(slots IS NOT NULL) OVER (ORDER BY rank, id) AS is_barred FROM head
)

UPDATE {schema}.jobs
SET state = 'running', node = $3::text, token = token + 1, started_at = NULL
WHERE ctid = ANY(ARRAY(SELECT place FROM seen WHERE NOT is_barred))
RETURNING
    id, task, queue, state, NULL, priority, rank, run_at, created_at, started_at, NULL, expires_at,
    attempt, errors, crashes, lost, token, node, alone, cancelling, unique_key, slots, depends_on, options, payload,
    unique_for, (SELECT coalesce(bool_or(is_barred), FALSE) FROM seen)
