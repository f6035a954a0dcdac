SELECT queue, min(run_at) FROM millpond_jobs WHERE state = 'queued' GROUP BY queue
