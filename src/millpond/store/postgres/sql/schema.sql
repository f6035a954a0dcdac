-- The line is narrow and short-lived; what ended moves to the history, where no claim ever looks.
CREATE TABLE {schema}.jobs (
    id uuid PRIMARY KEY,
    rank bigint NOT NULL,
    run_at bigint NOT NULL,
    created_at bigint NOT NULL,
    token bigint NOT NULL DEFAULT 0,
    attempt integer NOT NULL DEFAULT 0,
    errors integer NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    lost integer NOT NULL DEFAULT 0,
    waits integer NOT NULL DEFAULT 0,
    priority smallint NOT NULL,
    alone boolean NOT NULL DEFAULT FALSE,
    cancelling boolean NOT NULL DEFAULT FALSE,
    has_children boolean NOT NULL DEFAULT FALSE,
    state text NOT NULL CHECK (state IN ('blocked', 'scheduled', 'queued', 'running')),
    task text NOT NULL,
    queue text COLLATE "C" NOT NULL,
    attempts text NOT NULL DEFAULT '',
    node text,
    started_at bigint,
    expires_at bigint,
    unique_key text,
    unique_for text,
    slots text,
    depends_on text,
    parked text COLLATE "C",
    progress bytea,
    -- Last, behind all that claims and starts change: where a row's new version comes to the same page, the server
    -- writes to its log only what lies in front of the end that both have in common.
    options text NOT NULL,
    payload bytea NOT NULL,
    CHECK ((state = 'running') = (node IS NOT NULL)),
    CHECK (parked IS NULL OR state = 'queued')
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
-- What has ended. Dead jobs are few and kept for long; the others lie in a table for each day on which they ended, and
-- a day that is old enough is dropped whole.
CREATE TABLE {schema}.history (
    id uuid NOT NULL,
    finished_at bigint NOT NULL,
    rank bigint NOT NULL,
    run_at bigint NOT NULL,
    created_at bigint NOT NULL,
    token bigint NOT NULL,
    attempt integer NOT NULL,
    errors integer NOT NULL,
    crashes integer NOT NULL,
    lost integer NOT NULL,
    priority smallint NOT NULL,
    alone boolean NOT NULL,
    has_children boolean NOT NULL,
    state text NOT NULL,
    task text NOT NULL,
    queue text COLLATE "C" NOT NULL,
    options text NOT NULL,
    payload bytea NOT NULL,
    attempts text NOT NULL,
    reason text,
    started_at bigint,
    expires_at bigint,
    unique_key text,
    unique_for text,
    slots text,
    depends_on text,
    result bytea,
    progress bytea
) PARTITION BY LIST (state);
CREATE INDEX ended ON {schema}.history (id);
-- In the order in which they ended, so that a few pages of summaries tell where the old ones are.
CREATE INDEX ended_at ON {schema}.history USING brin (finished_at) WITH (autosummarize = on);
CREATE TABLE {schema}.history_dead PARTITION OF {schema}.history FOR VALUES IN ('dead');
CREATE TABLE {schema}.history_ended PARTITION OF {schema}.history
FOR VALUES IN ('completed', 'cancelled')
PARTITION BY RANGE (finished_at);
-- Cancelled jobs are looked for among many that completed.
CREATE INDEX ended_cancelled ON {schema}.history_ended (id) WHERE state = 'cancelled';
-- For a day that no node has made a table for.
CREATE TABLE {schema}.history_other PARTITION OF {schema}.history_ended DEFAULT;
-- A table for each of these days. As the owner's function, because a node's role may not make tables. It waits for no
-- lock for long: a transaction of a user that has looked at the history keeps the new table out until it ends.
CREATE FUNCTION {schema}.make_days(since bigint, number integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' SET timezone = 'UTC'
AS $$
DECLARE
    length CONSTANT bigint := 86400000000;
    first bigint;
    name text;
    made integer := 0;
BEGIN
    FOR first IN SELECT (since / length + step) * length FROM generate_series(0, least(number, 400) - 1) AS step LOOP
        name := to_char(to_timestamp(first / 1000000), '"history_"YYYY_MM_DD');
        CONTINUE WHEN to_regclass('{schema}.' || name) IS NOT NULL OR EXISTS (
            SELECT FROM {schema}.history_other WHERE finished_at >= first AND finished_at < first + length
        );
        EXECUTE format('CREATE TABLE {schema}.%I (LIKE {schema}.history_ended INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', name);
        EXECUTE format(
            'ALTER TABLE {schema}.history_ended ATTACH PARTITION {schema}.%I FOR VALUES FROM (%s) TO (%s)',
            name, first, first + length
        );
        made := made + 1;
    END LOOP;
    RETURN made;
END
$$;
-- Keep the jobs of the day that begins at this instant as they are: how many blocks its table has, or nothing if there
-- is no such table, or if another transaction changes or has read it and stays open.
CREATE FUNCTION {schema}.lock_day(first bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' SET timezone = 'UTC'
AS $$
DECLARE
    day regclass := to_regclass('{schema}.' || to_char(to_timestamp(first / 1000000), '"history_"YYYY_MM_DD'));
BEGIN
    IF day IS NULL THEN
        RETURN NULL;
    END IF;
    EXECUTE format('LOCK TABLE %s IN SHARE MODE', day); -- readers go on while its jobs are counted
    RETURN pg_relation_size(day) / current_setting('block_size')::bigint;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    RETURN NULL;
END
$$;
-- Drop the table of that day; false if another transaction has read it and stays open.
CREATE FUNCTION {schema}.drop_day(first bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' SET timezone = 'UTC'
AS $$
BEGIN
    EXECUTE format('DROP TABLE {schema}.%I', to_char(to_timestamp(first / 1000000), '"history_"YYYY_MM_DD'));
    RETURN TRUE;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    RETURN FALSE;
END
$$;
-- They work with the rights of the owner, so a role that may only read must not call them.
REVOKE ALL ON FUNCTION {schema}.make_days(bigint, integer), {schema}.lock_day(bigint), {schema}.drop_day(bigint) FROM PUBLIC;
CREATE TABLE {schema}.uniques (
    task text NOT NULL,
    unique_key text NOT NULL,
    job uuid NOT NULL,
    until bigint,
    PRIMARY KEY (task, unique_key)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE {schema}.dependencies (
    parent uuid NOT NULL,
    child uuid NOT NULL,
    PRIMARY KEY (parent, child)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX behind ON {schema}.dependencies (child);
-- Jobs that ended with more dependents than one step reaches; later steps go on with them.
CREATE TABLE {schema}.cascades (parent uuid PRIMARY KEY, state text NOT NULL);
CREATE TABLE {schema}.slots (
    name text COLLATE "C" PRIMARY KEY,
    capacity integer NOT NULL,
    used integer NOT NULL DEFAULT 0 CHECK (used >= 0),
    parked integer NOT NULL DEFAULT 0 CHECK (parked >= 0),
    sized_at bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX awaited ON {schema}.slots (name) WHERE parked > 0;
CREATE INDEX roomy ON {schema}.slots (name) WHERE parked > 0 AND used < capacity;
CREATE INDEX unused ON {schema}.slots (sized_at) WHERE used = 0 AND parked = 0;
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
    steady_since bigint NOT NULL
) WITH (fillfactor = 50);
-- Apart from the lease: an exchange may take long, and must not keep the node's own renewal waiting.
CREATE TABLE {schema}.exchanges (
    node text COLLATE "C" PRIMARY KEY,
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
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
-- How many jobs there are now: the sum of what every transaction has added and taken. A row for each minute, so
-- that none is changed for long; upkeep folds what is past into minute 0.
CREATE TABLE {schema}.tallies (
    minute bigint NOT NULL,
    queue text COLLATE "C" NOT NULL,
    what text COLLATE "C" NOT NULL,
    shard integer NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (minute, queue, what, shard)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE {schema}.ticks (
    recurring text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    job uuid,
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
-- The version, and the oldest version of the code that may work on it. The steps from 3 on follow in files of their own.
CREATE TABLE {schema}.meta (version integer NOT NULL, compatible_from integer NOT NULL);
INSERT INTO {schema}.meta (version, compatible_from) VALUES (3, 3);
SELECT {schema}.make_days((extract(EPOCH FROM now()) * 1000000)::bigint, 8);
