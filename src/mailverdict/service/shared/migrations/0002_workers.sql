-- Several workers on one store. Each statement adds; processes of the version before can go on meanwhile.

CREATE TABLE assignment ( -- jobs that a worker has claimed, until they end or are postponed
    seq bigint PRIMARY KEY REFERENCES job (seq) ON DELETE CASCADE,
    validation_type varchar(16) NOT NULL,
    batch bigint NOT NULL, -- the look_up task that claimed it
    owner text             -- organisation whose mail servers are asked; null until it is known
);
CREATE INDEX assignment_by_owner ON assignment (owner, seq);
CREATE INDEX assignment_by_type ON assignment (validation_type);

CREATE TABLE pace ( -- the token bucket of each client's bulk jobs
    client varchar(64) PRIMARY KEY,
    tokens double precision NOT NULL,
    counted_at double precision NOT NULL
);

CREATE TABLE worker (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL,
    version text NOT NULL,
    types text NOT NULL,
    egress text,
    seen_at double precision NOT NULL -- by the database's clock
);

CREATE TABLE tally ( -- jobs that ended; the sum over all shards is a counter that never falls
    shard smallint NOT NULL,
    status varchar(16) NOT NULL,
    validation_type varchar(16) NOT NULL,
    result varchar(16) NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (shard, status, validation_type, result)
);

CREATE INDEX job_queued ON job (validation_type, client, seq) WHERE status = 'queued';
