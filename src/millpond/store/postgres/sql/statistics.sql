SELECT queue, minute, what, bucket, sum(number)::bigint
FROM {schema}.minutes
WHERE minute >= $1 AND minute < $2
GROUP BY queue, minute, what, bucket
