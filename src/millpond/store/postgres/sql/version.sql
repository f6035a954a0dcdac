-- By name: the oldest versions have no second number.
SELECT (to_jsonb(meta) ->> 'version')::integer, (to_jsonb(meta) ->> 'compatible_from')::integer FROM {schema}.meta AS meta
