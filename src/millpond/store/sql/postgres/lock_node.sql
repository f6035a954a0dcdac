SELECT id, host, epoch, info, lease_until, lease, steady_since, sequence, sealed
FROM {schema}.nodes
WHERE id = $1
FOR UPDATE
