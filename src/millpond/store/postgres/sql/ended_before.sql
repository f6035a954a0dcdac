-- Whole days are dropped, not deleted. Where the instant is the end of a day, only jobs without a table of their day
-- are looked at: the table of a day that could not be dropped now is left to the next prune.
(
    SELECT id FROM {schema}.history
    WHERE state = $1 AND finished_at <= $2 AND (state = 'dead' OR $2::bigint % 86400000000 <> 0)
    LIMIT $3
)
UNION ALL
(
    SELECT id FROM {schema}.history_other
    WHERE state = $1 AND finished_at <= $2 AND state <> 'dead' AND $2::bigint % 86400000000 = 0
    LIMIT $3
)
LIMIT $3
