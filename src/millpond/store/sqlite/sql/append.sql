INSERT INTO millpond_logs (name, number, at, data) VALUES (?1, ?2, ?3, ?4)
