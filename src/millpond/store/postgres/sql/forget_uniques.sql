DELETE FROM {schema}.uniques
WHERE ctid = ANY(ARRAY(SELECT ctid FROM {schema}.uniques WHERE until IS NOT NULL AND until <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING 1
