-- Which of the verdicts are current, before `finish` carries them out.
SELECT id, token, task, queue, unique_key, slots, has_children, ?6
FROM millpond_jobs
WHERE id = ?4 AND token = ?5 AND node = ?1 AND state = 'running'
