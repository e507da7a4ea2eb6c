BEGIN TRANSACTION;
CREATE TABLE about (
	name VARCHAR(32) NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "about" VALUES('schema','1');
INSERT INTO "about" VALUES('job_id_key','5ec2e70000000000000000000000000000000000000000000000000000000000');
CREATE TABLE job (
	seq INTEGER NOT NULL, 
	job_id VARCHAR(64) NOT NULL, 
	client VARCHAR(64) NOT NULL, 
	email TEXT NOT NULL, 
	validation_type VARCHAR(16) NOT NULL, 
	status VARCHAR(16) NOT NULL, 
	attempt INTEGER NOT NULL, 
	due FLOAT, 
	verification TEXT, 
	message TEXT, 
	created_at FLOAT NOT NULL, 
	updated_at FLOAT NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (job_id)
);
INSERT INTO "job" VALUES(1,'15ad9f76f98bde158d10838bcadb031d','192.0.2.1','"ada@example.org"','regex','queued',0,NULL,NULL,NULL,1799999940.0,1799999940.0);
INSERT INTO "job" VALUES(2,'161c2ca78bd1ecd16cb00d17cc800b41','192.0.2.1','"bo@example.org"','regex','queued',0,NULL,NULL,NULL,1799999940.0,1799999940.0);
INSERT INTO "job" VALUES(3,'3fb9f50b05e382061e768da6bbc73b7c','192.0.2.1','"cy@example.org"','regex','queued',0,NULL,NULL,NULL,1799999940.0,1799999940.0);
INSERT INTO "job" VALUES(4,'646f6e65000000000000000000000000','192.0.2.1','"done@a.org"','smtp','done',0,NULL,'{"email":"done@a.org","validation_type":"mx","result":"valid","details":null,"reasons":[],"checks":{"syntax":true,"dns":true},"role":false,"disposable":false,"free":false,"reason":null,"errors":null,"metadata":{"validated_at":"2027-01-15T08:00:00+00:00"}}',NULL,1799999950.0,1799999980.0);
INSERT INTO "job" VALUES(5,'6661696c656400000000000000000000','192.0.2.1','"failed@a.org"','smtp','error',0,NULL,NULL,'the engine failed',1799999950.0,1799999980.0);
INSERT INTO "job" VALUES(6,'71756575656400000000000000000000','192.0.2.1','"queued@a.org"','smtp','queued',0,NULL,NULL,NULL,1799999950.0,1799999950.0);
INSERT INTO "job" VALUES(7,'776f726b696e67000000000000000000','192.0.2.1','"working@a.org"','smtp','processing',0,NULL,NULL,NULL,1799999950.0,1799999970.0);
INSERT INTO "job" VALUES(8,'6c617465720000000000000000000000','192.0.2.1','"later@a.org"','smtp','processing',2,1800000030.0,NULL,NULL,1799999950.0,1799999990.0);
INSERT INTO "job" VALUES(9,'677265796c6973746564000000000000','192.0.2.1','"greylisted@a.org"','smtp','processing',1,1799999995.0,NULL,NULL,1799999950.0,1799999990.0);
INSERT INTO "job" VALUES(10,'6f746865720000000000000000000000','192.0.2.2','"other@a.org"','smtp','queued',0,NULL,NULL,NULL,1799999960.0,1799999960.0);
INSERT INTO "job" VALUES(11,'7365636f6e6400000000000000000000','192.0.2.2','"second@a.org"','smtp','processing',0,NULL,NULL,NULL,1799999960.0,1799999970.0);
CREATE TABLE quota (
	client VARCHAR(64) NOT NULL, 
	day VARCHAR(10) NOT NULL, 
	used INTEGER NOT NULL, 
	PRIMARY KEY (client, day)
);
INSERT INTO "quota" VALUES('192.0.2.1','2027-01-15',9);
INSERT INTO "quota" VALUES('192.0.2.2','2027-01-15',2);
INSERT INTO "quota" VALUES('192.0.2.3','2027-01-15',7);
CREATE INDEX job_by_due ON job (due);
CREATE INDEX job_by_status ON job (status, client, seq);
COMMIT;
