-- Marks them, so that their end looks for children. One that is marked already is only kept from ending meanwhile,
-- which any number of transactions may do at once: else every enqueue behind a job would wait for the first's commit.
WITH marked AS (
    UPDATE {schema}.jobs SET has_children = TRUE WHERE id = ANY($1::uuid[]) AND NOT has_children RETURNING id, state
),

kept AS (SELECT id, state FROM {schema}.jobs WHERE id = ANY($1::uuid[]) AND has_children FOR KEY SHARE)

SELECT id, state FROM marked
UNION ALL
SELECT id, state FROM kept
