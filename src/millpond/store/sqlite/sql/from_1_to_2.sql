-- Whoever still writes as version 1 finds a table missing, and cannot spoil the tallies.
ALTER TABLE millpond_statistics RENAME TO millpond_minutes;
CREATE TABLE millpond_tallies (
    queue TEXT NOT NULL,
    what TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (queue, what)
) STRICT, WITHOUT ROWID;
CREATE INDEX millpond_blocked ON millpond_jobs (id) WHERE state = 'blocked';
