-- By the least of each, which is one look at an index: the planner may not expect to find one at once.
SELECT
    wanted.name, coalesce(queue.paused, FALSE), queue.rate,
    (
        SELECT min(expires_at) FROM {schema}.jobs
        WHERE expires_at IS NOT NULL AND state IN ('blocked', 'scheduled', 'queued') AND expires_at >= $5::bigint
    ) <= $2::bigint,
    (SELECT min(run_at) FROM {schema}.jobs WHERE state = 'scheduled' AND run_at >= $5::bigint) <= $2::bigint,
    EXISTS (SELECT FROM {schema}.slots WHERE parked > 0 AND used < capacity),
    EXISTS (SELECT FROM {schema}.cascades),
    EXISTS (SELECT FROM {schema}.jobs WHERE node = $3::text AND cancelling AND state = 'running'),
    (
        SELECT min(rank) FROM {schema}.jobs
        WHERE state = 'queued' AND parked IS NULL AND queue = wanted.name AND rank >= wanted.floor
    ) IS NOT NULL
FROM unnest($1::text[], $4::bigint[]) AS wanted (name, floor)
LEFT JOIN {schema}.queues AS queue ON wanted.name = queue.name
