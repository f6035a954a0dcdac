-- A lease that is locked is being renewed or given up at this moment: no row comes back, and the rescue goes on.
SELECT id, host, epoch, info, lease_until, lease, steady_since FROM {schema}.nodes WHERE id = $1 FOR UPDATE SKIP LOCKED
