-- The row as `count` takes it.
INSERT INTO millpond_tallies (queue, what, number) VALUES (?1, ?3, ?5)
ON CONFLICT (queue, what) DO UPDATE SET number = number + ?5
