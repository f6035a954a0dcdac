-- Which of these wait, before `cancel_waiting` ends them.
SELECT id, task, queue, unique_key, has_children, parked, state
FROM millpond_jobs
WHERE id = ?1 AND state IN ('blocked', 'scheduled', 'queued')
