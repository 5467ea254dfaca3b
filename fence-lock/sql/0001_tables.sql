-- What the lock store on PostgreSQL remembers, for people to SELECT. Written by the functions of the files after this one.
-- Who holds and who waits now is in the views fence_lock.held and fence_lock.waiting.
BEGIN;

CREATE SCHEMA IF NOT EXISTS fence_lock;
REVOKE ALL ON SCHEMA fence_lock FROM PUBLIC;

-- The epochs of this store; the highest is in force. A token is epoch * 2^48 + a value of fence_lock.token.
CREATE TABLE IF NOT EXISTS fence_lock.epoch (
    epoch integer PRIMARY KEY CHECK (epoch BETWEEN 1 AND 32767),
    -- fence_lock.identity() where the epoch was begun. In a database with another one the store is sealed.
    identity text NOT NULL,
    tier text NOT NULL,
    reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 1000),
    begun_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    begun_by text NOT NULL DEFAULT session_user
);

-- Without a cache: a backend that keeps values back hands out an old one after a newer one was granted.
CREATE SEQUENCE IF NOT EXISTS fence_lock.token AS bigint MINVALUE 1 MAXVALUE 281474976710655 CACHE 1 NO CYCLE;

-- Places in the queues, in the order in which they were taken.
CREATE SEQUENCE IF NOT EXISTS fence_lock.place AS bigint CACHE 1 NO CYCLE;

-- One lease for each process. It lives until expires_at by this server's clock, and ends when somebody needs what it holds,
-- or when it is closed: then its row is gone, and with it every hold and every place.
CREATE TABLE IF NOT EXISTS fence_lock.session (
    session text COLLATE "C" PRIMARY KEY CHECK (session ~ '^[A-Za-z0-9._:-]{1,64}$'),
    ttl interval NOT NULL CHECK (ttl BETWEEN interval '2 s' AND interval '1 h'),
    opened_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    application_name text NOT NULL
) WITH (fillfactor = 50);

-- One row for each lock that was ever taken. A grant is live while its session's row is there and has not expired.
CREATE TABLE IF NOT EXISTS fence_lock.lock (
    class text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    -- The token of the last grant; the next one is granted above it or not at all. 0 before the first.
    last_token bigint NOT NULL DEFAULT 0,
    -- The grant that holds, unless its session is over; NULL after a release.
    grant_id text COLLATE "C",
    session text COLLATE "C",
    granted_at timestamptz,
    PRIMARY KEY (class, key),
    CHECK ((grant_id IS NULL) = (session IS NULL))
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS lock_session ON fence_lock.lock (session) WHERE session IS NOT NULL;

-- One row for each attempt and key that waits. All keys of one attempt have one place.
CREATE TABLE IF NOT EXISTS fence_lock.waiter (
    class text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    place bigint NOT NULL,
    grant_id text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL REFERENCES fence_lock.session ON DELETE CASCADE,
    since timestamptz NOT NULL,
    -- The channel on which it wants to be woken; NULL when it asks again by itself.
    channel text,
    PRIMARY KEY (class, key, place)
);
CREATE INDEX IF NOT EXISTS waiter_grant_id ON fence_lock.waiter (grant_id);
CREATE INDEX IF NOT EXISTS waiter_session ON fence_lock.waiter (session);

-- Attempts that were given up while a request of theirs was on its way: it must not land on the living session.
CREATE TABLE IF NOT EXISTS fence_lock.given_up (
    session text COLLATE "C" NOT NULL REFERENCES fence_lock.session ON DELETE CASCADE,
    grant_id text COLLATE "C" NOT NULL,
    given_up_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (session, grant_id)
);

COMMIT;
