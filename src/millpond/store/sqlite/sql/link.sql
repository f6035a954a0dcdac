INSERT INTO millpond_dependencies (parent, child) VALUES (?1, ?2) ON CONFLICT DO NOTHING
