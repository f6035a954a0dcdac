-- Marks them, so that their end looks for children.
UPDATE {schema}.jobs SET has_children = TRUE WHERE id = ANY($1::text[]) RETURNING id, state
