-- By lot, since a user's transaction may have locked the dependents of some for hours: from a page of the table on that
-- is drawn, and around, so that however many there are only those that are taken are looked at. They come in any order.
WITH begin AS MATERIALIZED (
    SELECT
        format(
            '(%s,0)',
            floor(random() * (pg_relation_size('{schema}.cascades') / current_setting('block_size')::integer))
        )::tid AS place
),

behind AS MATERIALIZED (
    SELECT parent, state FROM {schema}.cascades
    WHERE ctid >= (SELECT place FROM begin)
    LIMIT $1
    FOR UPDATE SKIP LOCKED
),

before AS MATERIALIZED (
    SELECT parent, state FROM {schema}.cascades
    WHERE ctid < (SELECT place FROM begin)
    LIMIT $1 - (SELECT count(*) FROM behind)
    FOR UPDATE SKIP LOCKED
)

SELECT parent, state FROM (SELECT * FROM behind UNION ALL SELECT * FROM before) AS drawn ORDER BY random()
