-- A round of ticks in one round trip: each row, and for those that are new the job, its key, its slots, the count.
WITH wanted AS (
    SELECT *
    FROM unnest(
        $1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::smallint[], $8::bigint[],
        $9::bigint[], $10::bigint[], $11::bigint[], $12::text[], $13::text[], $14::text[], $15::text[],
        $16::integer[], $17::text[], $18::text[], $19::bytea[], $20::bigint[]
    ) WITH ORDINALITY AS tick (
        recurring, at, id, task, queue, state, priority, rank, run_at, created_at, expires_at, unique_key,
        unique_for, slots, depends_on, waits, parked, options, payload, until, place
    )
),

ticked AS (
    INSERT INTO {schema}.ticks (recurring, at, job, planned_at)
    SELECT recurring, at, id, $21::bigint FROM wanted ORDER BY place
    ON CONFLICT DO NOTHING
    RETURNING recurring, at
),

-- For each one look at the index: a join might be planned while a table is small, and read all of it. IS TRUE
-- keeps a set of keys a hash: as a join the planner would compare each with each.
fresh AS (
    SELECT wanted.*
    FROM wanted
    WHERE
        wanted.id IS NOT NULL
        AND ((wanted.recurring, wanted.at) IN (SELECT ticked.recurring, ticked.at FROM ticked)) IS TRUE
        AND (SELECT TRUE FROM {schema}.jobs AS job WHERE job.id = wanted.id) IS NULL
        AND (SELECT TRUE FROM {schema}.history AS ended WHERE ended.id = wanted.id) IS NULL
),

taken AS (
    INSERT INTO {schema}.uniques AS held (task, unique_key, job, until)
    SELECT DISTINCT ON (task, unique_key) task, unique_key, id, until
    FROM fresh
    WHERE unique_key IS NOT NULL
    ORDER BY task, unique_key, place
    ON CONFLICT (task, unique_key) DO UPDATE SET job = excluded.job, until = excluded.until
    WHERE held.until <= $21::bigint
    RETURNING job
),

made AS (
    INSERT INTO {schema}.jobs (
        id, task, queue, state, priority, rank, run_at, created_at, expires_at, unique_key, unique_for, slots,
        depends_on, waits, parked, options, payload
    )
    SELECT
        id, task, queue, state, priority, rank, run_at, created_at, expires_at, unique_key, unique_for, slots,
        depends_on, waits, parked, options, payload
    FROM fresh
    WHERE unique_key IS NULL OR id IN (SELECT taken.job FROM taken)
    ON CONFLICT (id) DO NOTHING
    RETURNING id, queue, created_at, state
),

-- A slot that is as it should be is only read.
sized AS (
    INSERT INTO {schema}.slots (name, capacity)
    SELECT DISTINCT ON (slot.name) slot.name, slot.capacity
    FROM unnest($22::text[], $23::text[], $24::integer[]) WITH ORDINALITY AS slot (job, name, capacity, place)
    WHERE
        (slot.job IN (SELECT made.id FROM made)) IS TRUE
        AND (
            SELECT TRUE FROM {schema}.slots AS known
            WHERE known.name = slot.name AND known.capacity = slot.capacity
        ) IS NULL
    ORDER BY slot.name, slot.place DESC
    ON CONFLICT (name) DO UPDATE SET capacity = excluded.capacity
),

tallied AS (
    INSERT INTO {schema}.tallies AS known (minute, queue, what, shard, number)
    SELECT min(created_at) / 60000000, queue, state, {shard}, count(*)
    FROM made
    GROUP BY queue, state
    ORDER BY queue, state
    ON CONFLICT (minute, queue, what, shard) DO UPDATE SET number = known.number + excluded.number
),

counted AS (
    INSERT INTO {schema}.minutes AS known (queue, minute, what, bucket, shard, number)
    SELECT queue, min(created_at) / 60000000, 'enqueued', 0, {shard}, count(*)
    FROM made
    GROUP BY queue
    ON CONFLICT (minute, queue, what, bucket, shard) DO UPDATE SET number = known.number + excluded.number
)

SELECT
    recurring,
    at,
    (SELECT count(pg_notify({channel}, queue)) FROM (SELECT DISTINCT queue FROM made) AS told)
FROM ticked
