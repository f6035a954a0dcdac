SELECT value, version FROM millpond_documents WHERE name = ?1
