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
    -- For each one look at the index: a join might be planned while the history is small, and read all of it.
    WHERE (SELECT TRUE FROM {schema}.history AS ended WHERE ended.id = job.id LIMIT 1) IS NULL
    ON CONFLICT (id) DO NOTHING
    RETURNING id, queue
)

SELECT id FROM made
