PRAGMA page_size=4096;
BEGIN TRANSACTION;
CREATE TABLE millpond_dependencies (
    parent TEXT NOT NULL,
    child TEXT NOT NULL,
    PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;
INSERT INTO millpond_dependencies VALUES('01a1efc9-0fa7-7811-971f-edda626c093a','01a1efc9-0fa8-7bc1-b88f-0f45f864f827');
CREATE INDEX millpond_behind ON millpond_dependencies (child);
CREATE TABLE millpond_documents (name TEXT PRIMARY KEY, value BLOB NOT NULL, version INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO millpond_documents VALUES('clock',X'7B2265706F6368223A2237333037643234302D643463622D343135642D613031382D613631373832663135613861222C22626F6F74223A323934383534373436312C2273746F7265223A313739353032343239333738373332352C226170617274223A313739353032313334353233393836347D',1);
INSERT INTO millpond_documents VALUES('doc',X'7B7D',1);
CREATE TABLE millpond_graves (node TEXT PRIMARY KEY, buried_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
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
INSERT INTO millpond_jobs VALUES(1,'01a1efc9-0f9d-7b61-8fc9-062c99421fd9','done','default','completed',NULL,1,1794937893789236,1795024293789236,1795024293789236,NULL,1795024293792722,NULL,1,0,0,0,1,NULL,0,0,NULL,NULL,NULL,NULL,0,0,NULL,'{}',X'7B226E223A20317D',X'31',NULL,'');
INSERT INTO millpond_jobs VALUES(2,'01a1efc9-0f9d-7b61-8fc9-062c99421fda','failed','default','dead','failed',1,1794937893789236,1795024293789236,1795024293789236,NULL,1795024293794021,NULL,1,1,0,0,1,NULL,0,0,'gone','done',NULL,NULL,0,0,NULL,'{}',X'7B7D',NULL,NULL,'');
INSERT INTO millpond_jobs VALUES(3,'01a1efc9-0fa2-7fd8-ab48-86631b7636a0','cancelled','c','cancelled','cancelled',1,1794937893794943,1795024293794943,1795024293794943,NULL,1795024293795582,NULL,0,0,0,0,0,NULL,0,0,NULL,NULL,NULL,NULL,0,0,NULL,'{}',X'7B7D',NULL,NULL,'');
INSERT INTO millpond_jobs VALUES(4,'01a1efc9-0fa4-7dfc-bac1-8a0c4f1cba07','retried','r','scheduled',NULL,1,1794941493798395,1795027893798395,1795024293796845,NULL,NULL,NULL,1,1,0,0,1,NULL,0,0,NULL,NULL,NULL,NULL,0,0,NULL,'{}',X'7B7D',NULL,NULL,'');
INSERT INTO millpond_jobs VALUES(5,'01a1efc9-0fa7-7811-971f-edda626c093a','parent','p','queued',NULL,1,1794937893799588,1795024293799588,1795024293799588,NULL,NULL,NULL,0,0,0,0,0,NULL,0,0,NULL,NULL,NULL,NULL,0,1,NULL,'{}',X'7B7D',NULL,NULL,'');
INSERT INTO millpond_jobs VALUES(6,'01a1efc9-0fa8-7bc1-b88f-0f45f864f827','child','p','blocked',NULL,1,1794937893800290,1795024293800290,1795024293800290,NULL,NULL,NULL,0,0,0,0,0,NULL,0,0,NULL,NULL,NULL,'["01a1efc9-0fa7-7811-971f-edda626c093a"]',1,0,NULL,'{}',X'7B7D',NULL,NULL,'');
INSERT INTO millpond_jobs VALUES(7,'01a1efc9-0fa9-78c6-9b74-fe5a668d6046','keyed','k','running',NULL,1,1794937893801376,1795024293801376,1795024293801376,NULL,NULL,NULL,0,0,0,0,1,'n1',0,0,NULL,NULL,'[["key",1]]',NULL,0,0,NULL,'{}',X'7B7D',NULL,NULL,'');
INSERT INTO millpond_jobs VALUES(8,'01a1efc9-0fab-7344-9466-3aef753b86c7','parked','k','queued',NULL,1,1794937893803624,1795024293803624,1795024293803624,NULL,NULL,NULL,0,0,0,0,0,NULL,0,0,NULL,NULL,'[["key",1]]',NULL,0,0,'key','{}',X'7B7D',NULL,NULL,'');
INSERT INTO millpond_jobs VALUES(9,'01a1efc9-0fab-7d38-8417-d8fecfc7faca','parked','k','queued',NULL,1,1794937893803624,1795024293803624,1795024293803624,NULL,NULL,NULL,0,0,0,0,0,NULL,0,0,NULL,NULL,'[["key",1]]',NULL,0,0,'key','{}',X'7B7D',NULL,NULL,'');
INSERT INTO millpond_jobs VALUES(10,'01a1efc9-0fac-7a64-9e11-2ae15a157f9a','unique','u','queued',NULL,1,1794937893804564,1795024293804564,1795024293804564,NULL,NULL,NULL,0,0,0,0,0,NULL,0,0,'k','done',NULL,NULL,0,0,NULL,'{}',X'7B7D',NULL,NULL,'');
INSERT INTO millpond_jobs VALUES(11,'01a1efc9-0fac-7a64-9e11-2ae15a157f9b','timed','u','queued',NULL,1,1794937893804564,1795024293804564,1795024293804564,NULL,NULL,NULL,0,0,0,0,0,NULL,0,0,'t','1000000000.0',NULL,NULL,0,0,NULL,'{}',X'7B7D',NULL,NULL,'');
INSERT INTO millpond_jobs VALUES(12,'01a1efc9-0fac-7fc1-bd2f-38241d5bae64','later','u','scheduled',NULL,1,1894937893804564,1895024293804564,1795024293804564,NULL,NULL,NULL,0,0,0,0,0,NULL,0,0,NULL,NULL,NULL,NULL,0,0,NULL,'{}',X'7B7D',NULL,NULL,'');
INSERT INTO millpond_jobs VALUES(13,'01a1efc9-0fac-7fc1-bd2f-38241d5bae65','expiring','u','queued',NULL,1,1794937893804564,1795024293804564,1795024293804564,NULL,NULL,1895024293804564,0,0,0,0,0,NULL,0,0,NULL,NULL,NULL,NULL,0,0,NULL,'{}',X'7B7D',NULL,NULL,'');
INSERT INTO millpond_jobs VALUES(14,'01a1efc9-0fad-7d3f-880f-4c2bde759b7c','urgent','u','queued',NULL,3,1794765093805575,1795024293805575,1795024293805575,NULL,NULL,NULL,0,0,0,0,0,NULL,0,0,NULL,NULL,NULL,NULL,0,0,NULL,'{}',X'7B7D',NULL,NULL,'');
INSERT INTO millpond_jobs VALUES(15,'01a1efc9-0faf-7aea-b9c1-27a0f8e81ea9','tick','t','queued',NULL,1,1794937893807561,1795024293807561,1795024293807561,NULL,NULL,NULL,0,0,0,0,0,NULL,0,0,NULL,NULL,NULL,NULL,0,0,NULL,'{}',X'7B7D',NULL,NULL,'');
INSERT INTO millpond_jobs VALUES(16,'01a1efc9-0fb1-732c-a79b-1e067e722f41','running','run','running',NULL,1,1794937893809984,1795024293809984,1795024293809984,NULL,NULL,NULL,0,0,0,0,1,'n1',0,0,NULL,NULL,NULL,NULL,0,0,NULL,'{}',X'7B7D',NULL,NULL,'');
CREATE INDEX millpond_blocked ON millpond_jobs (id) WHERE state = 'blocked';
CREATE INDEX millpond_cancelling ON millpond_jobs (node) WHERE cancelling = 1 AND state = 'running';
CREATE INDEX millpond_dead ON millpond_jobs (id) WHERE state = 'dead';
CREATE INDEX millpond_due ON millpond_jobs (run_at) WHERE state = 'scheduled';
CREATE INDEX millpond_ended ON millpond_jobs (state, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX millpond_expiring ON millpond_jobs (expires_at)
    WHERE expires_at IS NOT NULL AND state IN ('blocked', 'scheduled', 'queued');
CREATE INDEX millpond_parked ON millpond_jobs (queue, parked, rank, id) WHERE parked IS NOT NULL;
CREATE INDEX millpond_ready ON millpond_jobs (queue, rank, id) WHERE state = 'queued' AND parked IS NULL;
CREATE INDEX millpond_running ON millpond_jobs (node) WHERE state = 'running';
CREATE TABLE millpond_logs (
    name TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (name, number)
) STRICT, WITHOUT ROWID;
INSERT INTO millpond_logs VALUES('log',1,1795024293808927,X'31');
INSERT INTO millpond_logs VALUES('log',2,1795024293808927,X'32');
CREATE TABLE millpond_meta (version INTEGER NOT NULL) STRICT;
INSERT INTO millpond_meta VALUES(2);
CREATE TABLE millpond_minutes (
    queue TEXT NOT NULL,
    minute INTEGER NOT NULL,
    what TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (minute, queue, what, bucket)
) STRICT, WITHOUT ROWID;
INSERT INTO millpond_minutes VALUES('c',29917071,'cancelled',0,1);
INSERT INTO millpond_minutes VALUES('c',29917071,'enqueued',0,1);
INSERT INTO millpond_minutes VALUES('default',29917071,'completed',0,1);
INSERT INTO millpond_minutes VALUES('default',29917071,'dead',0,1);
INSERT INTO millpond_minutes VALUES('default',29917071,'enqueued',0,2);
INSERT INTO millpond_minutes VALUES('k',29917071,'enqueued',0,3);
INSERT INTO millpond_minutes VALUES('p',29917071,'enqueued',0,2);
INSERT INTO millpond_minutes VALUES('r',29917071,'enqueued',0,1);
INSERT INTO millpond_minutes VALUES('r',29917071,'retried',0,1);
INSERT INTO millpond_minutes VALUES('run',29917071,'enqueued',0,1);
INSERT INTO millpond_minutes VALUES('t',29917071,'enqueued',0,1);
INSERT INTO millpond_minutes VALUES('u',29917071,'enqueued',0,5);
CREATE TABLE millpond_nodes (
    id TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    epoch TEXT NOT NULL,
    info BLOB NOT NULL,
    lease_until INTEGER NOT NULL,
    lease INTEGER NOT NULL,
    steady_since INTEGER NOT NULL,
    sequence INTEGER NOT NULL DEFAULT 0,
    sealed INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
INSERT INTO millpond_nodes VALUES('n1','here','7307d240-d4cb-415d-a018-a61782f15a8a',X'7B7D',2963547881,15000000,2948547881,7,0);
INSERT INTO millpond_nodes VALUES('n2','here','7307d240-d4cb-415d-a018-a61782f15a8a',X'7B7D',2963548845,15000000,2948548845,0,0);
CREATE TABLE millpond_queues (
    name TEXT PRIMARY KEY,
    paused INTEGER NOT NULL DEFAULT 0,
    rate REAL,
    tokens REAL NOT NULL DEFAULT 0,
    filled_at INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
INSERT INTO millpond_queues VALUES('c',1,NULL,1.0,1795024293806171);
INSERT INTO millpond_queues VALUES('r',0,5.0,5.0,1795024293806874);
CREATE TABLE millpond_slots (
    name TEXT PRIMARY KEY,
    capacity INTEGER NOT NULL,
    used INTEGER NOT NULL DEFAULT 0,
    parked INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
INSERT INTO millpond_slots VALUES('key',1,1,2);
CREATE INDEX millpond_awaited ON millpond_slots (name) WHERE parked > 0;
CREATE TABLE millpond_tallies (
    queue TEXT NOT NULL,
    what TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (queue, what)
) STRICT, WITHOUT ROWID;
INSERT INTO millpond_tallies VALUES('c','cancelled',1);
INSERT INTO millpond_tallies VALUES('c','queued',0);
INSERT INTO millpond_tallies VALUES('default','completed',1);
INSERT INTO millpond_tallies VALUES('default','dead',1);
INSERT INTO millpond_tallies VALUES('default','queued',0);
INSERT INTO millpond_tallies VALUES('default','running',0);
INSERT INTO millpond_tallies VALUES('k','parked',2);
INSERT INTO millpond_tallies VALUES('k','queued',2);
INSERT INTO millpond_tallies VALUES('k','running',1);
INSERT INTO millpond_tallies VALUES('p','blocked',1);
INSERT INTO millpond_tallies VALUES('p','queued',1);
INSERT INTO millpond_tallies VALUES('r','queued',0);
INSERT INTO millpond_tallies VALUES('r','running',0);
INSERT INTO millpond_tallies VALUES('r','scheduled',1);
INSERT INTO millpond_tallies VALUES('run','queued',0);
INSERT INTO millpond_tallies VALUES('run','running',1);
INSERT INTO millpond_tallies VALUES('t','queued',1);
INSERT INTO millpond_tallies VALUES('u','queued',4);
INSERT INTO millpond_tallies VALUES('u','scheduled',1);
CREATE TABLE millpond_ticks (
    recurring TEXT NOT NULL,
    at INTEGER NOT NULL,
    job TEXT,
    planned_at INTEGER NOT NULL,
    PRIMARY KEY (recurring, at)
) STRICT, WITHOUT ROWID;
INSERT INTO millpond_ticks VALUES('tick',1000000,'01a1efc9-0faf-7aea-b9c1-27a0f8e81ea9',1795024293807561);
CREATE TABLE millpond_uniques (
    task TEXT NOT NULL,
    unique_key TEXT NOT NULL,
    job TEXT NOT NULL,
    until INTEGER,
    PRIMARY KEY (task, unique_key)
) STRICT, WITHOUT ROWID;
INSERT INTO millpond_uniques VALUES('timed','t','01a1efc9-0fac-7a64-9e11-2ae15a157f9b',2795024293804564);
INSERT INTO millpond_uniques VALUES('unique','k','01a1efc9-0fac-7a64-9e11-2ae15a157f9a',NULL);
COMMIT TRANSACTION;
