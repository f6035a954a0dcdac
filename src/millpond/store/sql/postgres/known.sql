SELECT id FROM {schema}.jobs WHERE id = ANY($1::text[])
UNION ALL
SELECT id FROM {schema}.history WHERE id = ANY($1::text[])
