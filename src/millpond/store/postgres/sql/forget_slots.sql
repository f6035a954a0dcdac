-- Slots that no job holds or is parked at, and that were sized a while ago. A job in line makes its slot anew.
DELETE FROM {schema}.slots
WHERE name = ANY(ARRAY(
    SELECT name FROM {schema}.slots
    WHERE used = 0 AND parked = 0 AND sized_at < $1
    ORDER BY name
    LIMIT $2
    FOR UPDATE SKIP LOCKED
))
RETURNING name
