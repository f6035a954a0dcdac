WITH gone AS (
    DELETE FROM {schema}.history WHERE id = ANY($1::uuid[])
    RETURNING queue, state
)

SELECT queue, state, count(*) FROM gone GROUP BY queue, state
