INSERT INTO {schema}.slots (name, capacity) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET capacity = $2
