-- A slot that another transaction has locked is left out: a claim never waits for one. Waiting here while
-- holding slots that an earlier statement freed is how two exchanges would wait for each other.
SELECT name, capacity, used, parked, sized_at FROM {schema}.slots
WHERE name = ANY($1::text[])
ORDER BY name
FOR UPDATE SKIP LOCKED
