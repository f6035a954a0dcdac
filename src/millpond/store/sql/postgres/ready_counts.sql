SELECT queue, count(*), min(run_at) FROM {schema}.jobs WHERE state = 'queued' AND parked IS NULL GROUP BY queue
