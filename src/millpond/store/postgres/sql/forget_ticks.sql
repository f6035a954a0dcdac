DELETE FROM {schema}.ticks
WHERE ctid = ANY(ARRAY(SELECT ctid FROM {schema}.ticks WHERE planned_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING 1
