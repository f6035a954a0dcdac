-- A queue whose rate another node spends at this moment is passed over.
SELECT rate, tokens, filled_at FROM {schema}.queues WHERE name = $1 FOR UPDATE SKIP LOCKED
