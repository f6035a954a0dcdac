UPDATE {schema}.jobs AS job SET parked = NULL
FROM (
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
) AS chosen
WHERE job.id = chosen.id
RETURNING job.id, chosen.name
