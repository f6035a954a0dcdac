-- For each one look at an index. A lock inside keeps the planner from making it a join over all that are held.
SELECT job.id, job.token, job.cancelling, job.task, job.queue, job.unique_key, job.slots, job.has_children
FROM (SELECT DISTINCT said.id FROM unnest($2::uuid[]) AS said (id)) AS asked
CROSS JOIN LATERAL (
    SELECT * FROM {schema}.jobs AS held
    WHERE held.id = asked.id AND held.node = $1 AND held.state = 'running'
    FOR UPDATE SKIP LOCKED
) AS job
