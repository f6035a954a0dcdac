-- So many jobs of each queue and state lie in some blocks of the table of a day; what they waited for is forgotten.
WITH page AS MATERIALIZED (
    SELECT id, queue, state FROM {schema}.history_ended
    WHERE finished_at >= $1::bigint AND finished_at < $2::bigint AND ctid >= $3::text::tid AND ctid < $4::text::tid
),

unlinked AS (DELETE FROM {schema}.dependencies AS link USING page WHERE link.child = page.id)

SELECT queue, state, count(*) FROM page GROUP BY queue, state
