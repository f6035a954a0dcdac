-- By an array of ids: joined, the planner expects as many as are parked and reads the whole table.
WITH chosen AS MATERIALIZED (
    SELECT best.id, slot.name
    FROM unnest($1::text[], $2::text[], $3::integer[], $4::text[]) AS slot (name, queue, free, without)
    CROSS JOIN LATERAL (
        SELECT id FROM {schema}.jobs
        WHERE
            parked = slot.name AND queue = slot.queue
            AND NOT jsonb_exists(slot.without::jsonb, task)
        ORDER BY rank, id
        LIMIT slot.free
        FOR UPDATE SKIP LOCKED
    ) AS best
)

UPDATE {schema}.jobs AS job SET parked = NULL
WHERE job.id = ANY(ARRAY(SELECT chosen.id FROM chosen))
RETURNING job.id, (SELECT chosen.name FROM chosen WHERE chosen.id = job.id)
