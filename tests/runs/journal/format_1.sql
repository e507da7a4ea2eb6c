PRAGMA application_id = 1297500721;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE attempts (  -- sent, or about to be sent; the outcome is not known
    key INTEGER NOT NULL, address TEXT NOT NULL, email TEXT NOT NULL, token TEXT NOT NULL, sent_at REAL NOT NULL,
    used_before INTEGER, owner INTEGER NOT NULL, judged INTEGER NOT NULL, losses INTEGER NOT NULL,
    free_at REAL NOT NULL, PRIMARY KEY (key, address)
) WITHOUT ROWID;
INSERT INTO "attempts" VALUES(1,'held@x.org','held@x.org','maybe',1699963200.0,6,1,1,0,1700049600.0);
INSERT INTO "attempts" VALUES(1,'unanswered1@x.org','unanswered1@x.org','unanswered',1699963260.0,8,2,0,0,1700049660.0);
INSERT INTO "attempts" VALUES(1,'unanswered2@x.org','unanswered2@x.org','unanswered',1699963260.0,8,2,0,0,1700049660.0);
CREATE TABLE batches (  -- submissions that were not answered, in their order
    key INTEGER NOT NULL, token TEXT NOT NULL, sent_at REAL NOT NULL, used_before INTEGER,
    emails TEXT NOT NULL, PRIMARY KEY (key, token)
) WITHOUT ROWID;
INSERT INTO "batches" VALUES(1,'maybe',1699963200.0,6,'["held@x.org"]');
INSERT INTO "batches" VALUES(1,'unanswered',1699963260.0,8,'["unanswered2@x.org", "unanswered1@x.org"]');
INSERT INTO "batches" VALUES(1,'uncounted',1699963200.0,7,'["uncounted2@x.org", "uncounted1@x.org"]');
CREATE TABLE changes (number INTEGER NOT NULL);
INSERT INTO "changes" VALUES(3);
CREATE TABLE jobs (  -- paid for and not final
    key INTEGER NOT NULL, job_id TEXT NOT NULL, address TEXT NOT NULL, email TEXT NOT NULL,
    validation_type TEXT NOT NULL, submitted_at REAL NOT NULL, PRIMARY KEY (key, job_id)
) WITHOUT ROWID;
INSERT INTO "jobs" VALUES(1,'job of job@X.org','job@x.org','job@X.org','smtp',1699963200.0);
INSERT INTO "jobs" VALUES(1,'job of polled@x.org','polled@x.org','polled@x.org','smtp',1699963260.0);
CREATE TABLE keys (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
INSERT INTO "keys" VALUES(1,'smtp http://verify.test');
INSERT INTO "keys" VALUES(2,'local:mx#0123');
CREATE TABLE leases (
    key INTEGER NOT NULL, address TEXT NOT NULL, owner INTEGER NOT NULL, PRIMARY KEY (key, address)
) WITHOUT ROWID;
INSERT INTO "leases" VALUES(1,'leased@x.org',2);
INSERT INTO "leases" VALUES(1,'polled@x.org',2);
INSERT INTO "leases" VALUES(1,'unanswered1@x.org',2);
INSERT INTO "leases" VALUES(1,'unanswered2@x.org',2);
CREATE TABLE outcomes (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, label TEXT NOT NULL, body TEXT NOT NULL);
INSERT INTO "outcomes" VALUES(1,X'04C77B7FEE3297A4DE0198225B07368B','valid','{"status":"done","validation_type":"smtp","result":"valid","reasons":"","checks":"{}"}');
INSERT INTO "outcomes" VALUES(2,X'096888A9B66EC0438EDF9878392EC7B6','unknown','{"status":"done","validation_type":"smtp","result":"unknown","reasons":"rate_limited","checks":"{}"}');
INSERT INTO "outcomes" VALUES(3,X'52CA94B98353726E6D1238797B8F7FF4','invalid','{"status":"done","validation_type":"mx","result":"invalid","reasons":"no_mx_record","checks":"{}"}');
CREATE TABLE owners (  -- processes that use the file
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: the attempts of a process that ended keep its number
    host TEXT NOT NULL, pid INTEGER NOT NULL, born TEXT NOT NULL, until REAL NOT NULL
);
INSERT INTO "owners" VALUES(2,'a-host pid:[4026531836]',11541,'1795749639.04',1699963860.0);
CREATE TABLE paces (  -- how fast a service may be asked
    service TEXT PRIMARY KEY, per_second REAL, open_at_once REAL NOT NULL, at REAL NOT NULL
) WITHOUT ROWID;
INSERT INTO "paces" VALUES('http://verify.test',20.0,40.0,1699963200.0);
CREATE TABLE settled (
    key INTEGER NOT NULL, address TEXT NOT NULL, outcome INTEGER NOT NULL, normalized TEXT, checked_at INTEGER,
    settled_at REAL NOT NULL, change INTEGER NOT NULL, owner INTEGER NOT NULL, PRIMARY KEY (key, address)
) WITHOUT ROWID;
INSERT INTO "settled" VALUES(1,'limited@x.org',2,NULL,NULL,1699963200.0,2,1);
INSERT INTO "settled" VALUES(1,'settled@x.org',1,NULL,NULL,1699963200.0,1,1);
INSERT INTO "settled" VALUES(2,'mx@x.org',3,NULL,NULL,1699963200.0,3,1);
CREATE INDEX jobs_by_address ON jobs (key, address);
CREATE INDEX attempts_by_token ON attempts (key, token);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('owners',2);
COMMIT;
