-- A statement of its own, after the lock on the lease: only so does it see a seal that was committed meanwhile.
SELECT sequence, sealed FROM {schema}.exchanges WHERE node = $1
