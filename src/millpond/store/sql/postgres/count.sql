INSERT INTO {schema}.statistics AS known (queue, minute, what, bucket, shard, number)
SELECT queue, minute, what, bucket, {shard}, number
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::integer[], $5::bigint[])
    AS more (queue, minute, what, bucket, number)
ON CONFLICT (minute, queue, what, bucket, shard) DO UPDATE SET number = known.number + excluded.number
