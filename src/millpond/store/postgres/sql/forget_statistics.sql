DELETE FROM {schema}.minutes
WHERE ctid = ANY(ARRAY(SELECT ctid FROM {schema}.minutes WHERE minute < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING 1
