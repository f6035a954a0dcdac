SELECT queue, state, count(*) FROM millpond_jobs GROUP BY queue, state
