SELECT id FROM {schema}.jobs WHERE id = ANY($1::uuid[])
UNION ALL
SELECT id FROM {schema}.history WHERE id = ANY($1::uuid[])
