INSERT INTO millpond_exchanges (node) VALUES (?1) ON CONFLICT DO NOTHING
