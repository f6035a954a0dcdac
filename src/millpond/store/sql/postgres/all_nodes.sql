SELECT
    node.id, node.host, node.epoch, node.info, node.lease_until, node.lease, node.steady_since, node.sequence,
    node.sealed, (SELECT count(*) FROM {schema}.jobs AS job WHERE job.state = 'running' AND job.node = node.id)
FROM {schema}.nodes AS node
ORDER BY node.id
