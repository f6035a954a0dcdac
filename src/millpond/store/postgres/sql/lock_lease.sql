-- The lease alone: no exchange of the node ever locks this row, however long it takes.
SELECT id, host, epoch, info, lease_until, lease, steady_since FROM {schema}.nodes WHERE id = $1 FOR UPDATE
