-- Nobody moves a job while they are counted; whoever still writes as version 1 then finds a table missing.
LOCK TABLE {schema}.jobs, {schema}.history IN SHARE ROW EXCLUSIVE MODE;
ALTER TABLE {schema}.statistics RENAME TO minutes;
CREATE TABLE {schema}.tallies (
    minute bigint NOT NULL,
    queue text COLLATE "C" NOT NULL,
    what text COLLATE "C" NOT NULL,
    shard integer NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (minute, queue, what, shard)
) WITH (fillfactor = 50);
INSERT INTO {schema}.tallies (minute, queue, what, shard, number)
SELECT 0, queue, state, 0, count(*) FROM {schema}.jobs GROUP BY queue, state
UNION ALL
SELECT 0, queue, state, 0, count(*) FROM {schema}.history GROUP BY queue, state
UNION ALL
SELECT 0, queue, 'parked', 0, count(*) FROM {schema}.jobs WHERE parked IS NOT NULL AND state = 'queued' GROUP BY queue;
CREATE INDEX blocked ON {schema}.jobs (id) WHERE state = 'blocked';
UPDATE {schema}.meta SET version = 2;
