INSERT INTO millpond_jobs (
    id, task, queue, state, priority, rank, run_at, created_at, expires_at, unique_key, unique_for, slots,
    depends_on, waits, parked, options, payload
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
ON CONFLICT (id) DO NOTHING
RETURNING id
