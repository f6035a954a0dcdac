SELECT
    id, host, epoch, info, lease_until, lease, steady_since, sequence, sealed,
    (SELECT count(*) FROM millpond_jobs WHERE millpond_jobs.state = 'running' AND millpond_jobs.node = millpond_nodes.id)
FROM millpond_nodes
ORDER BY id
