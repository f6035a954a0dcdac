DELETE FROM {schema}.ticks WHERE planned_at < $1
