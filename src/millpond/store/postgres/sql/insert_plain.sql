-- One round trip for a job that concerns nobody else: stored and counted.
WITH made AS (
    INSERT INTO {schema}.jobs (
        id, task, queue, state, priority, rank, run_at, created_at, expires_at, unique_key, unique_for, slots,
        depends_on, waits, parked, options, payload
    )
    SELECT *
    FROM unnest(
        $1::uuid[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::bigint[], $7::bigint[], $8::bigint[],
        $9::bigint[], $10::text[], $11::text[], $12::text[], $13::text[], $14::integer[], $15::text[],
        $16::text[], $17::bytea[]
    ) AS job (id)
    ON CONFLICT (id) DO NOTHING
    RETURNING id, queue, created_at, state
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

SELECT id FROM made
