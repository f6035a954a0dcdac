-- Makes the slots that are not there. An insert would wait for another transaction that inserts the same name; the
-- advisory lock is only tried, so that the slot is left out instead. Every statement that makes slots takes it.
INSERT INTO {schema}.slots (name, capacity, sized_at)
SELECT wanted.name, wanted.capacity, wanted.sized_at
FROM unnest($1::text[], $2::integer[], $3::bigint[]) AS wanted (name, capacity, sized_at)
WHERE
    (SELECT TRUE FROM {schema}.slots AS known WHERE known.name = wanted.name) IS NULL
    AND pg_try_advisory_xact_lock(hashtextextended('{schema} slot ' || wanted.name, 0))
ON CONFLICT DO NOTHING
RETURNING name, capacity, used, parked, sized_at
