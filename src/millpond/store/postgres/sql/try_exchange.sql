-- A node whose row is locked is in an exchange at this moment: it lives, and no row comes back.
SELECT sequence, sealed FROM {schema}.exchanges WHERE node = $1 FOR UPDATE SKIP LOCKED
