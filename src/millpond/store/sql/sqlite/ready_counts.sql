SELECT queue, count(*), min(run_at) FROM millpond_jobs WHERE state = 'queued' AND parked IS NULL GROUP BY queue
