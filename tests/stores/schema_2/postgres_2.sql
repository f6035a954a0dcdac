CREATE SCHEMA {schema};
CREATE TABLE {schema}.dependencies (
    parent text NOT NULL COLLATE pg_catalog."C",
    child text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE {schema}.documents (
    name text NOT NULL,
    value bytea NOT NULL,
    version bigint NOT NULL
);
CREATE TABLE {schema}.graves (
    node text NOT NULL,
    buried_at bigint NOT NULL
);
CREATE TABLE {schema}.history (
    id text NOT NULL COLLATE pg_catalog."C",
    task text NOT NULL,
    queue text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL,
    reason text,
    priority smallint NOT NULL,
    rank bigint NOT NULL,
    run_at bigint NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    expires_at bigint,
    attempt integer DEFAULT 0 NOT NULL,
    errors integer DEFAULT 0 NOT NULL,
    crashes integer DEFAULT 0 NOT NULL,
    lost integer DEFAULT 0 NOT NULL,
    token bigint DEFAULT 0 NOT NULL,
    node text,
    alone boolean DEFAULT false NOT NULL,
    cancelling boolean DEFAULT false NOT NULL,
    unique_key text,
    unique_for text,
    slots text,
    depends_on text,
    waits integer DEFAULT 0 NOT NULL,
    has_children boolean DEFAULT false NOT NULL,
    parked text COLLATE pg_catalog."C",
    options text NOT NULL,
    payload bytea NOT NULL,
    result bytea,
    progress bytea,
    attempts text DEFAULT ''::text NOT NULL
);
CREATE TABLE {schema}.jobs (
    id text NOT NULL COLLATE pg_catalog."C",
    task text NOT NULL,
    queue text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL,
    reason text,
    priority smallint NOT NULL,
    rank bigint NOT NULL,
    run_at bigint NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    expires_at bigint,
    attempt integer DEFAULT 0 NOT NULL,
    errors integer DEFAULT 0 NOT NULL,
    crashes integer DEFAULT 0 NOT NULL,
    lost integer DEFAULT 0 NOT NULL,
    token bigint DEFAULT 0 NOT NULL,
    node text,
    alone boolean DEFAULT false NOT NULL,
    cancelling boolean DEFAULT false NOT NULL,
    unique_key text,
    unique_for text,
    slots text,
    depends_on text,
    waits integer DEFAULT 0 NOT NULL,
    has_children boolean DEFAULT false NOT NULL,
    parked text COLLATE pg_catalog."C",
    options text NOT NULL,
    payload bytea NOT NULL,
    result bytea,
    progress bytea,
    attempts text DEFAULT ''::text NOT NULL
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');
CREATE TABLE {schema}.logs (
    name text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    at bigint NOT NULL,
    data bytea NOT NULL
);
CREATE TABLE {schema}.meta (
    version integer NOT NULL
);
CREATE TABLE {schema}.minutes (
    queue text NOT NULL COLLATE pg_catalog."C",
    minute bigint NOT NULL,
    what text NOT NULL COLLATE pg_catalog."C",
    bucket integer NOT NULL,
    shard integer NOT NULL,
    number bigint NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE {schema}.nodes (
    id text NOT NULL COLLATE pg_catalog."C",
    host text NOT NULL,
    epoch text NOT NULL,
    info bytea NOT NULL,
    lease_until bigint NOT NULL,
    lease bigint NOT NULL,
    steady_since bigint NOT NULL,
    sequence bigint DEFAULT 0 NOT NULL,
    sealed boolean DEFAULT false NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE {schema}.queues (
    name text NOT NULL COLLATE pg_catalog."C",
    paused boolean DEFAULT false NOT NULL,
    rate double precision,
    tokens double precision DEFAULT 0 NOT NULL,
    filled_at bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE {schema}.slots (
    name text NOT NULL COLLATE pg_catalog."C",
    capacity integer NOT NULL,
    used integer DEFAULT 0 NOT NULL,
    parked integer DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE {schema}.tallies (
    minute bigint NOT NULL,
    queue text NOT NULL COLLATE pg_catalog."C",
    what text NOT NULL COLLATE pg_catalog."C",
    shard integer NOT NULL,
    number bigint NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE {schema}.ticks (
    recurring text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    job text,
    planned_at bigint NOT NULL
);
CREATE TABLE {schema}.uniques (
    task text NOT NULL,
    unique_key text NOT NULL,
    job text NOT NULL,
    until bigint
);
INSERT INTO {schema}.dependencies VALUES ('01a1efc9-0c17-7f7b-a8b3-9ef0f45635d2', '01a1efc9-0c18-7c1c-99ba-f15ab6a669ee');
INSERT INTO {schema}.documents VALUES ('doc', '\x7b7d', 1);
INSERT INTO {schema}.history VALUES ('01a1efc9-0bf9-708c-85df-6ee939e59ac2', 'done', 'default', 'completed', NULL, 1, 1794937892857505, 1795024292857505, 1795024292857505, NULL, 1795024292871629, NULL, 1, 0, 0, 0, 1, NULL, false, false, NULL, NULL, NULL, NULL, 0, false, NULL, '{}', '\x7b226e223a20317d', '\x31', NULL, '');
INSERT INTO {schema}.history VALUES ('01a1efc9-0bf9-7931-8e44-fc86b4da17a2', 'failed', 'default', 'dead', 'failed', 1, 1794937892857505, 1795024292857505, 1795024292857505, NULL, 1795024292875081, NULL, 1, 1, 0, 0, 1, NULL, false, false, 'gone', 'done', NULL, NULL, 0, false, NULL, '{}', '\x7b7d', NULL, NULL, '');
INSERT INTO {schema}.history VALUES ('01a1efc9-0c0d-76b3-ac56-cd2834e463cb', 'cancelled', 'c', 'cancelled', 'cancelled', 1, 1794937892877635, 1795024292877635, 1795024292877635, NULL, 1795024292879125, NULL, 0, 0, 0, 0, 0, NULL, false, false, NULL, NULL, NULL, NULL, 0, false, NULL, '{}', '\x7b7d', NULL, NULL, '');
INSERT INTO {schema}.jobs VALUES ('01a1efc9-0c12-7347-8161-fb47ddb7292e', 'retried', 'r', 'scheduled', NULL, 1, 1794941492884681, 1795027892884681, 1795024292882895, NULL, NULL, NULL, 1, 1, 0, 0, 1, NULL, false, false, NULL, NULL, NULL, NULL, 0, false, NULL, '{}', '\x7b7d', NULL, NULL, '');
INSERT INTO {schema}.jobs VALUES ('01a1efc9-0c17-7f7b-a8b3-9ef0f45635d2', 'parent', 'p', 'queued', NULL, 1, 1794937892887537, 1795024292887537, 1795024292887537, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, false, false, NULL, NULL, NULL, NULL, 0, true, NULL, '{}', '\x7b7d', NULL, NULL, '');
INSERT INTO {schema}.jobs VALUES ('01a1efc9-0c18-7c1c-99ba-f15ab6a669ee', 'child', 'p', 'blocked', NULL, 1, 1794937892888744, 1795024292888744, 1795024292888744, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, false, false, NULL, NULL, NULL, '["01a1efc9-0c17-7f7b-a8b3-9ef0f45635d2"]', 1, false, NULL, '{}', '\x7b7d', NULL, NULL, '');
INSERT INTO {schema}.jobs VALUES ('01a1efc9-0c1b-7031-9fd5-8aef43bae3f8', 'keyed', 'k', 'running', NULL, 1, 1794937892891685, 1795024292891685, 1795024292891685, NULL, NULL, NULL, 0, 0, 0, 0, 1, 'n1', false, false, NULL, NULL, '[["key",1]]', NULL, 0, false, NULL, '{}', '\x7b7d', NULL, NULL, '');
INSERT INTO {schema}.jobs VALUES ('01a1efc9-0c24-72df-a733-62b82e20ce63', 'parked', 'k', 'queued', NULL, 1, 1794937892900075, 1795024292900075, 1795024292900075, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, false, false, NULL, NULL, '[["key",1]]', NULL, 0, false, 'key', '{}', '\x7b7d', NULL, NULL, '');
INSERT INTO {schema}.jobs VALUES ('01a1efc9-0c24-72df-a733-62b82e20ce64', 'parked', 'k', 'queued', NULL, 1, 1794937892900075, 1795024292900075, 1795024292900075, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, false, false, NULL, NULL, '[["key",1]]', NULL, 0, false, 'key', '{}', '\x7b7d', NULL, NULL, '');
INSERT INTO {schema}.jobs VALUES ('01a1efc9-0c26-7b69-8c4c-448194783fb7', 'unique', 'u', 'queued', NULL, 1, 1794937892902371, 1795024292902371, 1795024292902371, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, false, false, 'k', 'done', NULL, NULL, 0, false, NULL, '{}', '\x7b7d', NULL, NULL, '');
INSERT INTO {schema}.jobs VALUES ('01a1efc9-0c26-7b69-8c4c-448194783fb8', 'timed', 'u', 'queued', NULL, 1, 1794937892902371, 1795024292902371, 1795024292902371, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, false, false, 't', '1000000000.0', NULL, NULL, 0, false, NULL, '{}', '\x7b7d', NULL, NULL, '');
INSERT INTO {schema}.jobs VALUES ('01a1efc9-0c26-7b69-8c4c-448194783fb9', 'later', 'u', 'scheduled', NULL, 1, 1894937892902371, 1895024292902371, 1795024292902371, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, false, false, NULL, NULL, NULL, NULL, 0, false, NULL, '{}', '\x7b7d', NULL, NULL, '');
INSERT INTO {schema}.jobs VALUES ('01a1efc9-0c26-7f66-bd7f-63db4f4e421d', 'expiring', 'u', 'queued', NULL, 1, 1794937892902371, 1795024292902371, 1795024292902371, NULL, NULL, 1895024292902371, 0, 0, 0, 0, 0, NULL, false, false, NULL, NULL, NULL, NULL, 0, false, NULL, '{}', '\x7b7d', NULL, NULL, '');
INSERT INTO {schema}.jobs VALUES ('01a1efc9-0c28-7410-bfe4-6f27548d7942', 'urgent', 'u', 'queued', NULL, 3, 1794765092904056, 1795024292904056, 1795024292904056, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, false, false, NULL, NULL, NULL, NULL, 0, false, NULL, '{}', '\x7b7d', NULL, NULL, '');
INSERT INTO {schema}.jobs VALUES ('01a1efc9-0c2a-7370-b662-1df2f735505c', 'tick', 't', 'queued', NULL, 1, 1794937892906492, 1795024292906492, 1795024292906492, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, false, false, NULL, NULL, NULL, NULL, 0, false, NULL, '{}', '\x7b7d', NULL, NULL, '');
INSERT INTO {schema}.jobs VALUES ('01a1efc9-0c31-79d7-9574-e9b72ade06c4', 'running', 'run', 'running', NULL, 1, 1794937892913129, 1795024292913129, 1795024292913129, NULL, NULL, NULL, 0, 0, 0, 0, 1, 'n1', false, false, NULL, NULL, NULL, NULL, 0, false, NULL, '{}', '\x7b7d', NULL, NULL, '');
INSERT INTO {schema}.logs VALUES ('log', 1, 1795024292910600, '\x31');
INSERT INTO {schema}.logs VALUES ('log', 2, 1795024292910600, '\x32');
INSERT INTO {schema}.meta VALUES (2);
INSERT INTO {schema}.minutes VALUES ('default', 29917071, 'enqueued', 0, 11, 2);
INSERT INTO {schema}.minutes VALUES ('default', 29917071, 'completed', 0, 11, 1);
INSERT INTO {schema}.minutes VALUES ('default', 29917071, 'dead', 0, 11, 1);
INSERT INTO {schema}.minutes VALUES ('c', 29917071, 'enqueued', 0, 11, 1);
INSERT INTO {schema}.minutes VALUES ('c', 29917071, 'cancelled', 0, 11, 1);
INSERT INTO {schema}.minutes VALUES ('r', 29917071, 'enqueued', 0, 11, 1);
INSERT INTO {schema}.minutes VALUES ('r', 29917071, 'retried', 0, 11, 1);
INSERT INTO {schema}.minutes VALUES ('p', 29917071, 'enqueued', 0, 11, 2);
INSERT INTO {schema}.minutes VALUES ('k', 29917071, 'enqueued', 0, 11, 3);
INSERT INTO {schema}.minutes VALUES ('u', 29917071, 'enqueued', 0, 11, 5);
INSERT INTO {schema}.minutes VALUES ('t', 29917071, 'enqueued', 0, 14, 1);
INSERT INTO {schema}.minutes VALUES ('run', 29917071, 'enqueued', 0, 11, 1);
INSERT INTO {schema}.nodes VALUES ('n2', 'here', '', '\x7b7d', 1795024307857217, 15000000, 1795024292857217, 0, false);
INSERT INTO {schema}.nodes VALUES ('n1', 'here', '', '\x7b7d', 1795024307855726, 15000000, 1795024292855726, 7, false);
INSERT INTO {schema}.queues VALUES ('c', true, NULL, 1, 1795024292904952);
INSERT INTO {schema}.queues VALUES ('r', false, 5, 5, 1795024292905891);
INSERT INTO {schema}.slots VALUES ('key', 1, 1, 2);
INSERT INTO {schema}.tallies VALUES (29917071, 'default', 'queued', 11, 2);
INSERT INTO {schema}.tallies VALUES (29917071, 'default', 'queued', 14, -2);
INSERT INTO {schema}.tallies VALUES (29917071, 'default', 'running', 14, 2);
INSERT INTO {schema}.tallies VALUES (29917071, 'default', 'completed', 11, 1);
INSERT INTO {schema}.tallies VALUES (29917071, 'default', 'dead', 11, 1);
INSERT INTO {schema}.tallies VALUES (29917071, 'default', 'running', 11, -2);
INSERT INTO {schema}.tallies VALUES (29917071, 'c', 'cancelled', 11, 1);
INSERT INTO {schema}.tallies VALUES (29917071, 'c', 'queued', 11, 0);
INSERT INTO {schema}.tallies VALUES (29917071, 'r', 'queued', 11, 1);
INSERT INTO {schema}.tallies VALUES (29917071, 'r', 'queued', 14, -1);
INSERT INTO {schema}.tallies VALUES (29917071, 'r', 'running', 14, 1);
INSERT INTO {schema}.tallies VALUES (29917071, 'r', 'running', 11, -1);
INSERT INTO {schema}.tallies VALUES (29917071, 'r', 'scheduled', 11, 1);
INSERT INTO {schema}.tallies VALUES (29917071, 'p', 'queued', 11, 1);
INSERT INTO {schema}.tallies VALUES (29917071, 'p', 'blocked', 11, 1);
INSERT INTO {schema}.tallies VALUES (29917071, 'k', 'running', 11, 1);
INSERT INTO {schema}.tallies VALUES (29917071, 'k', 'parked', 11, 2);
INSERT INTO {schema}.tallies VALUES (29917071, 'k', 'queued', 11, 2);
INSERT INTO {schema}.tallies VALUES (29917071, 'u', 'scheduled', 11, 1);
INSERT INTO {schema}.tallies VALUES (29917071, 'u', 'queued', 11, 4);
INSERT INTO {schema}.tallies VALUES (29917071, 't', 'queued', 14, 1);
INSERT INTO {schema}.tallies VALUES (29917071, 'run', 'queued', 11, 1);
INSERT INTO {schema}.tallies VALUES (29917071, 'run', 'queued', 14, -1);
INSERT INTO {schema}.tallies VALUES (29917071, 'run', 'running', 14, 1);
INSERT INTO {schema}.ticks VALUES ('tick', 1000000, '01a1efc9-0c2a-7370-b662-1df2f735505c', 1795024292906492);
INSERT INTO {schema}.uniques VALUES ('timed', 't', '01a1efc9-0c26-7b69-8c4c-448194783fb8', 2795024292902371);
INSERT INTO {schema}.uniques VALUES ('unique', 'k', '01a1efc9-0c26-7b69-8c4c-448194783fb7', NULL);
ALTER TABLE ONLY {schema}.dependencies
    ADD CONSTRAINT dependencies_pkey PRIMARY KEY (parent, child);
ALTER TABLE ONLY {schema}.documents
    ADD CONSTRAINT documents_pkey PRIMARY KEY (name);
ALTER TABLE ONLY {schema}.graves
    ADD CONSTRAINT graves_pkey PRIMARY KEY (node);
ALTER TABLE ONLY {schema}.history
    ADD CONSTRAINT history_pkey PRIMARY KEY (id);
ALTER TABLE ONLY {schema}.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY {schema}.logs
    ADD CONSTRAINT logs_pkey PRIMARY KEY (name, number);
ALTER TABLE ONLY {schema}.minutes
    ADD CONSTRAINT minutes_pkey PRIMARY KEY (minute, queue, what, bucket, shard);
ALTER TABLE ONLY {schema}.nodes
    ADD CONSTRAINT nodes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY {schema}.queues
    ADD CONSTRAINT queues_pkey PRIMARY KEY (name);
ALTER TABLE ONLY {schema}.slots
    ADD CONSTRAINT slots_pkey PRIMARY KEY (name);
ALTER TABLE ONLY {schema}.tallies
    ADD CONSTRAINT tallies_pkey PRIMARY KEY (minute, queue, what, shard);
ALTER TABLE ONLY {schema}.ticks
    ADD CONSTRAINT ticks_pkey PRIMARY KEY (recurring, at);
ALTER TABLE ONLY {schema}.uniques
    ADD CONSTRAINT uniques_pkey PRIMARY KEY (task, unique_key);
CREATE INDEX awaited ON {schema}.slots USING btree (name) WHERE (parked > 0);
CREATE INDEX behind ON {schema}.dependencies USING btree (child);
CREATE INDEX blocked ON {schema}.jobs USING btree (id) WHERE (state = 'blocked'::text);
CREATE INDEX cancelling ON {schema}.jobs USING btree (node) WHERE (cancelling AND (state = 'running'::text));
CREATE INDEX dead ON {schema}.history USING btree (id) WHERE (state = 'dead'::text);
CREATE INDEX due ON {schema}.jobs USING btree (run_at) WHERE (state = 'scheduled'::text);
CREATE INDEX ended ON {schema}.history USING btree (state, finished_at);
CREATE INDEX expiring ON {schema}.jobs USING btree (expires_at) WHERE ((expires_at IS NOT NULL) AND (state <> 'running'::text));
CREATE INDEX parked ON {schema}.jobs USING btree (queue, parked, rank, id) WHERE (parked IS NOT NULL);
CREATE INDEX ready ON {schema}.jobs USING btree (queue, rank, id) WHERE ((state = 'queued'::text) AND (parked IS NULL));
CREATE INDEX running ON {schema}.jobs USING btree (node, id) WHERE (state = 'running'::text);
