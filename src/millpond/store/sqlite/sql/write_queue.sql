-- A new rate begins with a full bucket: one second's worth, and at least one job.
INSERT INTO millpond_queues (name, paused, rate, tokens, filled_at)
VALUES (?1, coalesce(?2, 0), ?4, max(1.0, coalesce(?4, 0)), ?5)
ON CONFLICT (name) DO UPDATE SET
    paused = coalesce(?2, paused),
    rate = CASE WHEN ?3 THEN ?4 ELSE rate END,
    tokens = CASE WHEN ?3 THEN max(1.0, coalesce(?4, 0)) ELSE tokens END,
    filled_at = CASE WHEN ?3 THEN ?5 ELSE filled_at END
RETURNING paused
