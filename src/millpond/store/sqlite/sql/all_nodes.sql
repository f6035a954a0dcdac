SELECT
    nodes.id, nodes.host, nodes.epoch, nodes.info, nodes.lease_until, nodes.lease, nodes.steady_since,
    exchanges.sequence, exchanges.sealed,
    (SELECT count(*) FROM millpond_jobs WHERE millpond_jobs.state = 'running' AND millpond_jobs.node = nodes.id)
FROM millpond_nodes AS nodes
JOIN millpond_exchanges AS exchanges ON exchanges.node = nodes.id
ORDER BY nodes.id
