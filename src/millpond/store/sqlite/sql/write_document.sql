INSERT INTO millpond_documents (name, value, version) SELECT ?1, ?2, 1 WHERE ?3 = 0 OR EXISTS (SELECT 1 FROM millpond_documents WHERE name = ?1)
ON CONFLICT (name) DO UPDATE SET value = ?2, version = version + 1 WHERE version = ?3
RETURNING version
