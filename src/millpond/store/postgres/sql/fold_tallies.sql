-- What is past, but for rows that a caller's open transaction holds: those wait for the next time.
WITH past AS (
    DELETE FROM {schema}.tallies
    WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM {schema}.tallies WHERE minute > 0 AND minute < $1 FOR UPDATE SKIP LOCKED
    ))
    RETURNING queue, what, number
)

INSERT INTO {schema}.tallies AS known (minute, queue, what, shard, number)
SELECT 0, queue, what, 0, sum(number)
FROM past
GROUP BY queue, what
ORDER BY queue, what
ON CONFLICT (minute, queue, what, shard) DO UPDATE SET number = known.number + excluded.number
