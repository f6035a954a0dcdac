-- A slot that is as it should be is only read: DO UPDATE would lock it for as long as a caller's transaction.
WITH wanted AS (
    SELECT * FROM unnest($1::text[], $2::integer[]) AS slot (name, capacity)
),

same AS (
    SELECT slot.name, slot.capacity, slot.used, slot.parked
    FROM {schema}.slots AS slot
    JOIN wanted ON slot.name = wanted.name AND slot.capacity = wanted.capacity
),

changed AS (
    INSERT INTO {schema}.slots (name, capacity)
    SELECT name, capacity FROM wanted
    WHERE name NOT IN (SELECT same.name FROM same)
    ON CONFLICT (name) DO UPDATE SET capacity = excluded.capacity
    RETURNING name, capacity, used, parked
)

SELECT name, capacity, used, parked FROM same
UNION ALL
SELECT name, capacity, used, parked FROM changed
