SELECT queue, min(run_at) FROM {schema}.jobs WHERE state = 'queued' GROUP BY queue
