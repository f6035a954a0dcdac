-- A record that cannot be read: it ends, with what led to it left as it is.
UPDATE millpond_jobs SET state = 'dead', reason = 'damaged', finished_at = ?2, node = NULL, parked = NULL
WHERE id = ?1
RETURNING id, task, queue, unique_key, has_children, parked
