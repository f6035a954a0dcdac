-- By the schema: handles with and without notifications append to the same logs.
SELECT pg_advisory_xact_lock(hashtextextended('{schema}.' || $1::text, 0))
