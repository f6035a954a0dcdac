INSERT INTO millpond_nodes (id, host, epoch, info, lease_until, lease, steady_since)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (id) DO UPDATE SET
    host = ?2, epoch = ?3, info = ?4, lease_until = ?5, lease = ?6, steady_since = ?7
RETURNING (SELECT version FROM millpond_meta), (SELECT compatible_from FROM millpond_meta)
