-- The first day behind $2 of which all jobs had ended before $1, as the instant at which it begins.
SELECT day.first
FROM pg_inherits AS link
JOIN pg_class AS child ON child.oid = link.inhrelid
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN child.relname LIKE 'history\_____\___\___'
            THEN (extract(EPOCH FROM to_date(child.relname, '"history_"YYYY_MM_DD')) * 1000000)::bigint
    END AS first
) AS day
WHERE
    link.inhparent = '{schema}.history_ended'::regclass
    AND day.first + 86400000000 <= $1::bigint AND day.first > $2::bigint
ORDER BY day.first
LIMIT 1
