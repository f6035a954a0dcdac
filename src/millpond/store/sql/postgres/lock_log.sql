SELECT pg_advisory_xact_lock(hashtextextended({channel} || $1::text, 0))
