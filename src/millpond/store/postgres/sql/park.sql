UPDATE {schema}.jobs AS job SET parked = full_one.slot
FROM unnest($1::uuid[], $2::text[]) AS full_one (id, slot)
WHERE job.id = full_one.id
