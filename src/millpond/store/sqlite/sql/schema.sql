-- One table of jobs; partial indexes keep the line short however much history there is.
CREATE TABLE millpond_jobs (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    task TEXT NOT NULL,
    queue TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    priority INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    expires_at INTEGER,
    attempt INTEGER NOT NULL DEFAULT 0,
    errors INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    lost INTEGER NOT NULL DEFAULT 0,
    token INTEGER NOT NULL DEFAULT 0,
    node TEXT,
    alone INTEGER NOT NULL DEFAULT 0,
    cancelling INTEGER NOT NULL DEFAULT 0,
    unique_key TEXT,
    unique_for TEXT,
    slots TEXT,
    depends_on TEXT,
    waits INTEGER NOT NULL DEFAULT 0,
    has_children INTEGER NOT NULL DEFAULT 0,
    parked TEXT,
    options TEXT NOT NULL,
    payload BLOB NOT NULL,
    result BLOB,
    progress BLOB,
    attempts TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX millpond_ready ON millpond_jobs (queue, rank, id) WHERE state = 'queued' AND parked IS NULL;
CREATE INDEX millpond_parked ON millpond_jobs (queue, parked, rank, id) WHERE parked IS NOT NULL;
CREATE INDEX millpond_due ON millpond_jobs (run_at) WHERE state = 'scheduled';
CREATE INDEX millpond_running ON millpond_jobs (node) WHERE state = 'running';
CREATE INDEX millpond_cancelling ON millpond_jobs (node) WHERE cancelling = 1 AND state = 'running';
CREATE INDEX millpond_blocked ON millpond_jobs (id) WHERE state = 'blocked';
CREATE INDEX millpond_dead ON millpond_jobs (id) WHERE state = 'dead';
CREATE INDEX millpond_expiring ON millpond_jobs (expires_at)
    WHERE expires_at IS NOT NULL AND state IN ('blocked', 'scheduled', 'queued');
CREATE INDEX millpond_ended ON millpond_jobs (state, finished_at) WHERE finished_at IS NOT NULL;
CREATE TABLE millpond_uniques (
    task TEXT NOT NULL,
    unique_key TEXT NOT NULL,
    job TEXT NOT NULL,
    until INTEGER,
    PRIMARY KEY (task, unique_key)
) STRICT, WITHOUT ROWID;
CREATE TABLE millpond_dependencies (
    parent TEXT NOT NULL,
    child TEXT NOT NULL,
    PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;
CREATE INDEX millpond_behind ON millpond_dependencies (child);
-- Jobs that ended with more dependents than one step reaches; later steps go on with them.
CREATE TABLE millpond_cascades (parent TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE millpond_slots (
    name TEXT PRIMARY KEY,
    capacity INTEGER NOT NULL,
    used INTEGER NOT NULL DEFAULT 0,
    parked INTEGER NOT NULL DEFAULT 0,
    sized_at INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX millpond_awaited ON millpond_slots (name) WHERE parked > 0;
CREATE INDEX millpond_roomy ON millpond_slots (name) WHERE parked > 0 AND used < capacity;
CREATE INDEX millpond_unused ON millpond_slots (sized_at) WHERE used = 0 AND parked = 0;
CREATE TABLE millpond_queues (
    name TEXT PRIMARY KEY,
    paused INTEGER NOT NULL DEFAULT 0,
    rate REAL,
    tokens REAL NOT NULL DEFAULT 0,
    filled_at INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE TABLE millpond_nodes (
    id TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    epoch TEXT NOT NULL,
    info BLOB NOT NULL,
    lease_until INTEGER NOT NULL,
    lease INTEGER NOT NULL,
    steady_since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE millpond_exchanges (
    node TEXT PRIMARY KEY,
    sequence INTEGER NOT NULL DEFAULT 0,
    sealed INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE TABLE millpond_graves (node TEXT PRIMARY KEY, buried_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE millpond_minutes (
    queue TEXT NOT NULL,
    minute INTEGER NOT NULL,
    what TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (minute, queue, what, bucket)
) STRICT, WITHOUT ROWID;
-- How many jobs there are now, kept by every transaction that moves some: nobody counts a million rows to know.
CREATE TABLE millpond_tallies (
    queue TEXT NOT NULL,
    what TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (queue, what)
) STRICT, WITHOUT ROWID;
CREATE TABLE millpond_ticks (
    recurring TEXT NOT NULL,
    at INTEGER NOT NULL,
    job TEXT,
    planned_at INTEGER NOT NULL,
    PRIMARY KEY (recurring, at)
) STRICT, WITHOUT ROWID;
CREATE TABLE millpond_documents (name TEXT PRIMARY KEY, value BLOB NOT NULL, version INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE millpond_logs (
    name TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (name, number)
) STRICT, WITHOUT ROWID;
-- The version, and the oldest version of the code that may work on it. The steps from 3 on follow in files of their own.
CREATE TABLE millpond_meta (version INTEGER NOT NULL, compatible_from INTEGER NOT NULL) STRICT;
INSERT INTO millpond_meta (version, compatible_from) VALUES (3, 3);
