SELECT queue, state, count(*) FROM {schema}.jobs GROUP BY queue, state
UNION ALL
SELECT queue, state, count(*) FROM {schema}.history GROUP BY queue, state
