INSERT INTO millpond_graves (node, buried_at) SELECT id, ?2 FROM millpond_nodes WHERE id = ?1 ON CONFLICT DO NOTHING
