-- One round trip for the usual claim: the node speaks, the first in line become its own, and are counted.
-- If there is anything else to do, nothing is done and no row comes back; else one at least, without a job if
-- there is none. The places are of rows that are locked already: nobody can move them meanwhile. That of the node's
-- own row is a hint (store/postgres_places.py); the look by its key is made only where there is no hint.
WITH head AS MATERIALIZED (
    SELECT job.place, job.is_barred
    FROM unnest($3::text[], $4::integer[], $6::bigint[]) AS wanted (name, number, floor)
    CROSS JOIN LATERAL (
        SELECT ctid AS place, slots IS NOT NULL OR unique_for IS NOT DISTINCT FROM 'waiting' AS is_barred
        FROM {schema}.jobs
        WHERE state = 'queued' AND parked IS NULL AND queue = wanted.name AND rank >= wanted.floor
        ORDER BY rank, id
        LIMIT wanted.number
        FOR UPDATE SKIP LOCKED
    ) AS job
),

said AS (
    UPDATE {schema}.exchanges SET sequence = $2
    WHERE
        ctid = coalesce($8::tid, (SELECT ctid FROM {schema}.exchanges WHERE node = $1))
        AND node = $1 AND NOT sealed AND sequence < $2
        AND NOT EXISTS (SELECT FROM head WHERE is_barred)
        AND NOT EXISTS (SELECT FROM {schema}.queues WHERE name = ANY($3::text[]) AND (paused OR rate IS NOT NULL))
        AND NOT coalesce((
            SELECT min(expires_at) FROM {schema}.jobs
            WHERE expires_at IS NOT NULL AND state IN ('blocked', 'scheduled', 'queued') AND expires_at >= $7::bigint
        ) <= $5::bigint, FALSE)
        AND NOT coalesce((
            SELECT min(run_at) FROM {schema}.jobs WHERE state = 'scheduled' AND run_at >= $7::bigint
        ) <= $5::bigint, FALSE)
        AND NOT EXISTS (SELECT FROM {schema}.slots WHERE parked > 0 AND used < capacity)
        AND NOT EXISTS (SELECT FROM {schema}.cascades)
        AND NOT EXISTS (SELECT FROM {schema}.jobs WHERE node = $1 AND cancelling AND state = 'running')
    RETURNING ctid::text AS place
),

taken AS (
    UPDATE {schema}.jobs
    SET state = 'running', node = $1, token = token + 1, started_at = NULL
    WHERE ctid = ANY(ARRAY(SELECT place FROM head)) AND EXISTS (SELECT FROM said)
    RETURNING
        id, task, queue, state, NULL, priority, rank, run_at, created_at, started_at, NULL, expires_at,
        attempt, errors, crashes, lost, token, node, alone, cancelling, unique_key, slots, depends_on, options,
        payload, unique_for
),

tallied AS (
    INSERT INTO {schema}.tallies AS known (minute, queue, what, shard, number)
    SELECT $5::bigint / 60000000, taken.queue, said.what, {shard}, sum(said.number)
    FROM taken CROSS JOIN (VALUES ('queued', -1), ('running', 1)) AS said (what, number)
    GROUP BY taken.queue, said.what
    ORDER BY taken.queue, said.what
    ON CONFLICT (minute, queue, what, shard) DO UPDATE SET number = known.number + excluded.number
)

SELECT taken.*, said.place FROM said LEFT JOIN taken ON TRUE
