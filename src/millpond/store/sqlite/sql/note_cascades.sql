-- Parents that ended and have jobs behind them that were not reached in this step.
INSERT INTO millpond_cascades (parent, state)
SELECT ended.value, ?2 FROM json_each(?1) AS ended
WHERE EXISTS (SELECT 1 FROM millpond_dependencies AS link WHERE link.parent = ended.value)
ON CONFLICT (parent) DO NOTHING
