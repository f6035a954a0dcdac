-- The line is narrow and short-lived; what ended moves to the history, where no claim ever looks.
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE {schema}.jobs (
    id text COLLATE "C" PRIMARY KEY,
    task text NOT NULL,
    queue text COLLATE "C" NOT NULL,
    state text NOT NULL,
    reason text,
    priority smallint NOT NULL,
    rank bigint NOT NULL,
    run_at bigint NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    expires_at bigint,
    attempt integer NOT NULL DEFAULT 0,
    errors integer NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    lost integer NOT NULL DEFAULT 0,
    token bigint NOT NULL DEFAULT 0,
    node text,
    alone boolean NOT NULL DEFAULT FALSE,
    cancelling boolean NOT NULL DEFAULT FALSE,
    unique_key text,
    unique_for text,
    slots text,
    depends_on text,
    waits integer NOT NULL DEFAULT 0,
    has_children boolean NOT NULL DEFAULT FALSE,
    parked text COLLATE "C",
    options text NOT NULL,
    payload bytea NOT NULL,
    result bytea,
    progress bytea,
    attempts text NOT NULL DEFAULT ''
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX ready ON {schema}.jobs (queue, rank, id) WHERE state = 'queued' AND parked IS NULL;
CREATE INDEX parked ON {schema}.jobs (queue, parked, rank, id) WHERE parked IS NOT NULL;
CREATE INDEX due ON {schema}.jobs (run_at) WHERE state = 'scheduled';
CREATE INDEX running ON {schema}.jobs (node, id) WHERE state = 'running';
CREATE INDEX cancelling ON {schema}.jobs (node) WHERE cancelling AND state = 'running';
CREATE INDEX blocked ON {schema}.jobs (id) WHERE state = 'blocked';
CREATE INDEX expiring ON {schema}.jobs (expires_at) WHERE expires_at IS NOT NULL AND state <> 'running';
CREATE TABLE {schema}.history (
    id text COLLATE "C" PRIMARY KEY,
    task text NOT NULL,
    queue text COLLATE "C" NOT NULL,
    state text NOT NULL,
    reason text,
    priority smallint NOT NULL,
    rank bigint NOT NULL,
    run_at bigint NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    expires_at bigint,
    attempt integer NOT NULL DEFAULT 0,
    errors integer NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    lost integer NOT NULL DEFAULT 0,
    token bigint NOT NULL DEFAULT 0,
    node text,
    alone boolean NOT NULL DEFAULT FALSE,
    cancelling boolean NOT NULL DEFAULT FALSE,
    unique_key text,
    unique_for text,
    slots text,
    depends_on text,
    waits integer NOT NULL DEFAULT 0,
    has_children boolean NOT NULL DEFAULT FALSE,
    parked text COLLATE "C",
    options text NOT NULL,
    payload bytea NOT NULL,
    result bytea,
    progress bytea,
    attempts text NOT NULL DEFAULT ''
);
CREATE INDEX ended ON {schema}.history (state, finished_at);
CREATE INDEX dead ON {schema}.history (id) WHERE state = 'dead';
CREATE TABLE {schema}.uniques (
    task text NOT NULL,
    unique_key text NOT NULL,
    job text NOT NULL,
    until bigint,
    PRIMARY KEY (task, unique_key)
);
CREATE TABLE {schema}.dependencies (
    parent text COLLATE "C" NOT NULL,
    child text COLLATE "C" NOT NULL,
    PRIMARY KEY (parent, child)
);
CREATE INDEX behind ON {schema}.dependencies (child);
CREATE TABLE {schema}.slots (
    name text COLLATE "C" PRIMARY KEY,
    capacity integer NOT NULL,
    used integer NOT NULL DEFAULT 0,
    parked integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE INDEX awaited ON {schema}.slots (name) WHERE parked > 0;
CREATE TABLE {schema}.queues (
    name text COLLATE "C" PRIMARY KEY,
    paused boolean NOT NULL DEFAULT FALSE,
    rate double precision,
    tokens double precision NOT NULL DEFAULT 0,
    filled_at bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE TABLE {schema}.nodes (
    id text COLLATE "C" PRIMARY KEY,
    host text NOT NULL,
    epoch text NOT NULL,
    info bytea NOT NULL,
    lease_until bigint NOT NULL,
    lease bigint NOT NULL,
    steady_since bigint NOT NULL,
    sequence bigint NOT NULL DEFAULT 0,
    sealed boolean NOT NULL DEFAULT FALSE
) WITH (fillfactor = 50);
CREATE TABLE {schema}.graves (node text PRIMARY KEY, buried_at bigint NOT NULL);
-- A shard for each of a few connections, so that those who count at once do not wait for each other.
CREATE TABLE {schema}.minutes (
    queue text COLLATE "C" NOT NULL,
    minute bigint NOT NULL,
    what text COLLATE "C" NOT NULL,
    bucket integer NOT NULL,
    shard integer NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (minute, queue, what, bucket, shard)
) WITH (fillfactor = 50);
-- How many jobs there are now: the sum of what every transaction has added and taken. A row for each minute, so
-- that none is changed for long; upkeep folds what is past into minute 0.
CREATE TABLE {schema}.tallies (
    minute bigint NOT NULL,
    queue text COLLATE "C" NOT NULL,
    what text COLLATE "C" NOT NULL,
    shard integer NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (minute, queue, what, shard)
) WITH (fillfactor = 50);
CREATE TABLE {schema}.ticks (
    recurring text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    job text,
    planned_at bigint NOT NULL,
    PRIMARY KEY (recurring, at)
);
CREATE TABLE {schema}.documents (name text PRIMARY KEY, value bytea NOT NULL, version bigint NOT NULL);
CREATE TABLE {schema}.logs (
    name text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    at bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (name, number)
);
CREATE TABLE {schema}.meta (version integer NOT NULL);
INSERT INTO {schema}.meta (version) VALUES (2);
