-- A round of ticks in one round trip: each row, and for those that are new the job, its key, the count.
WITH wanted AS (
    SELECT *
    FROM unnest(
        $1::text[], $2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::smallint[], $8::bigint[],
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
        AND (SELECT TRUE FROM {schema}.history AS ended WHERE ended.id = wanted.id LIMIT 1) IS NULL
),

keyed AS (
    SELECT DISTINCT ON (task, unique_key) task, unique_key, id, until
    FROM fresh
    WHERE unique_key IS NOT NULL
    ORDER BY task, unique_key, place
),

-- As take_unique and take_lapsed: a key that is held is not locked, or the job that holds it could not end meanwhile.
taken AS (
    INSERT INTO {schema}.uniques (task, unique_key, job, until)
    SELECT task, unique_key, id, until FROM keyed
    ON CONFLICT (task, unique_key) DO NOTHING
    RETURNING job
),

lapsed AS (
    UPDATE {schema}.uniques AS held SET job = keyed.id, until = keyed.until
    FROM keyed
    WHERE held.task = keyed.task AND held.unique_key = keyed.unique_key AND held.until <= $21::bigint
    RETURNING held.job
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
    WHERE unique_key IS NULL OR id IN (SELECT job FROM taken UNION ALL SELECT job FROM lapsed)
    ON CONFLICT (id) DO NOTHING
    RETURNING id, queue, created_at, state
),

-- A slot that is not there is made by the claim; one that is locked is sized by the claim of its newest job.
sized AS (
    UPDATE {schema}.slots AS slot SET capacity = wanted.capacity, sized_at = $21::bigint
    FROM (
        SELECT DISTINCT ON (said.name) said.name, said.capacity
        FROM unnest($22::uuid[], $23::text[], $24::integer[]) WITH ORDINALITY AS said (job, name, capacity, place)
        WHERE (said.job IN (SELECT made.id FROM made)) IS TRUE
        ORDER BY said.name, said.place DESC
    ) AS wanted
    WHERE
        slot.name = wanted.name
        AND slot.name = ANY(ARRAY(
            SELECT known.name FROM {schema}.slots AS known
            WHERE known.name = ANY($23::text[])
            ORDER BY known.name
            FOR UPDATE SKIP LOCKED
        ))
        AND slot.capacity <> wanted.capacity
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
    ORDER BY queue
    ON CONFLICT (minute, queue, what, bucket, shard) DO UPDATE SET number = known.number + excluded.number
)

SELECT recurring, at FROM ticked
