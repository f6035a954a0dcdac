INSERT INTO {schema}.exchanges (node) VALUES ($1) ON CONFLICT DO NOTHING
