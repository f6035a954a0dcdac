-- Marks them, so that their end looks for children.
UPDATE millpond_jobs SET has_children = 1 WHERE id IN (SELECT value FROM json_each(?1)) RETURNING id, state
