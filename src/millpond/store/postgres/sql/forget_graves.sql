DELETE FROM {schema}.graves WHERE buried_at < $1
