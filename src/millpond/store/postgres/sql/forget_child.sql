-- One that was cancelled still stands behind its parents; a later job of the same id must not.
DELETE FROM {schema}.dependencies WHERE child = ANY($1::uuid[])
