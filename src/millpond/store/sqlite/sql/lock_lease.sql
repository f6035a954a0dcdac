SELECT id, host, epoch, info, lease_until, lease, steady_since FROM millpond_nodes WHERE id = ?1
