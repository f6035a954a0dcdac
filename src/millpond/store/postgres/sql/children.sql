-- A page of the jobs behind these, each with whether it can be changed now: one that another transaction has locked
-- (a job enqueued behind it and not committed yet) waits for a later step, and holds up no other. Parent by parent,
-- as they are given, and no more links are read than the page has.
WITH page AS MATERIALIZED (
    SELECT link.parent, link.child
    FROM unnest($1::uuid[]) AS ended (parent)
    CROSS JOIN LATERAL (
        SELECT parent, child FROM {schema}.dependencies WHERE parent = ended.parent ORDER BY child LIMIT $2
    ) AS link
    LIMIT $2
),

free AS MATERIALIZED (
    SELECT id FROM {schema}.jobs
    WHERE id = ANY(ARRAY(SELECT child FROM page)) AND state <> 'running'
    ORDER BY id
    FOR UPDATE SKIP LOCKED
)

SELECT
    page.parent, page.child,
    page.child IN (SELECT id FROM free) OR NOT EXISTS (SELECT FROM {schema}.jobs AS job WHERE job.id = page.child)
FROM page
