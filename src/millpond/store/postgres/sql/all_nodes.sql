-- No node has been steady for longer than the server is up: while it was away no lease could be renewed, and
-- the first node to come back must not take the others for dead. (A lease from before the start cannot rescue anyway.)
SELECT
    node.id, node.host, node.epoch, node.info, node.lease_until, node.lease,
    CASE WHEN node.lease_until > up.since THEN greatest(node.steady_since, up.since) ELSE node.steady_since END,
    exchange.sequence, exchange.sealed,
    (SELECT count(*) FROM {schema}.jobs AS job WHERE job.state = 'running' AND job.node = node.id)
FROM {schema}.nodes AS node
JOIN {schema}.exchanges AS exchange ON exchange.node = node.id
CROSS JOIN (SELECT (extract(EPOCH FROM pg_postmaster_start_time()) * 1000000)::bigint AS since) AS up
ORDER BY node.id
