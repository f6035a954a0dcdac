-- One that was cancelled still stands behind its parents; a later job of the same id must not.
DELETE FROM millpond_dependencies WHERE child IN (SELECT value FROM json_each(?1))
