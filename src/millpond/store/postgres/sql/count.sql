-- What happened in this minute, and (as bucket -1) how many more or fewer jobs there are now.
WITH more AS (
    SELECT *
    FROM unnest($1::text[], $2::bigint[], $3::text[], $4::integer[], $5::bigint[])
        AS said (queue, minute, what, bucket, number)
),

tallied AS (
    INSERT INTO {schema}.tallies AS known (minute, queue, what, shard, number)
    SELECT minute, queue, what, {shard}, number
    FROM more
    WHERE bucket < 0
    ON CONFLICT (minute, queue, what, shard) DO UPDATE SET number = known.number + excluded.number
)

INSERT INTO {schema}.minutes AS known (queue, minute, what, bucket, shard, number)
SELECT queue, minute, what, bucket, {shard}, number
FROM more
WHERE bucket >= 0
ON CONFLICT (minute, queue, what, bucket, shard) DO UPDATE SET number = known.number + excluded.number
