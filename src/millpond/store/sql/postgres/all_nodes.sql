-- Nobody has been steady for longer than the server is up: while it was away no lease could be renewed, and
-- who came back first must not take the others for dead. (A lease from before the start cannot rescue anyway.)
SELECT
    node.id, node.host, node.epoch, node.info, node.lease_until, node.lease,
    CASE WHEN node.lease_until > up.since THEN greatest(node.steady_since, up.since) ELSE node.steady_since END,
    node.sequence, node.sealed,
    (SELECT count(*) FROM {schema}.jobs AS job WHERE job.state = 'running' AND job.node = node.id)
FROM {schema}.nodes AS node,
    (SELECT (extract(EPOCH FROM pg_postmaster_start_time()) * 1000000)::bigint AS since) AS up
ORDER BY node.id
