-- Parents that ended and have jobs behind them that were not reached in this step.
INSERT INTO {schema}.cascades (parent, state)
SELECT parent, $2 FROM unnest($1::uuid[]) AS ended (parent)
WHERE EXISTS (SELECT FROM {schema}.dependencies AS link WHERE link.parent = ended.parent)
ON CONFLICT (parent) DO NOTHING
