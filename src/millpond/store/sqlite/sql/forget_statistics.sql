DELETE FROM millpond_minutes
WHERE (minute, queue, what, bucket) IN (SELECT minute, queue, what, bucket FROM millpond_minutes WHERE minute < ?1 LIMIT ?2)
RETURNING 1
