-- Single checks by `smtp` are answered by workers, under the lock of the owner. Each statement adds.

CREATE TABLE single_check ( -- for as long as a client waits
    id varchar(64) PRIMARY KEY,
    owner text NOT NULL, -- organisation whose mail servers are asked
    email text NOT NULL, -- as JSON text, like that of a job
    expires_at double precision NOT NULL, -- by the database's clock; the client does not wait longer
    is_answered boolean NOT NULL DEFAULT false,
    verification text, -- the payload as JSON text
    failure text       -- why there is none
);
CREATE INDEX single_check_waiting ON single_check (owner, expires_at) WHERE NOT is_answered;

CREATE UNLOGGED TABLE check_pace ( -- the token bucket of each client's single checks; a crash fills them
    client varchar(64) PRIMARY KEY,
    tokens double precision NOT NULL,
    counted_at double precision NOT NULL
);

CREATE TABLE second_pass ( -- greylisted jobs that are asked, or were asked, once more
    seq bigint PRIMARY KEY REFERENCES job (seq) ON DELETE CASCADE
);

ALTER TABLE worker ADD COLUMN answers_checks boolean NOT NULL DEFAULT false; -- false: the version before
