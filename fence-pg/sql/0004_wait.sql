-- How long an admission waits, and what it says about whoever it waited for.
BEGIN;
SET LOCAL client_min_messages = warning;
LOCK TABLE fence.migration IN SHARE ROW EXCLUSIVE MODE;
SET LOCAL lock_timeout = '1s';

-- One backend in words, as far as the calling role may see it.
CREATE OR REPLACE FUNCTION fence.describe_backend(pid integer) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT concat_ws(', ',
        'pid ' || a.pid,
        format('application %L', nullif(a.application_name, '')),
        'role ' || a.usename,
        'in transaction since ' || a.xact_start,
        a.state || ' since ' || a.state_change)
    FROM pg_stat_activity a WHERE a.pid = $1
$$;

-- A timeout setting in milliseconds; 0 means none.
CREATE OR REPLACE FUNCTION fence.timeout_ms(setting text) RETURNS integer
LANGUAGE sql STABLE
AS $$
    SELECT (extract(epoch FROM current_setting($1)::interval) * 1000)::integer
$$;

-- The lock_timeout for a wait that is part of one begun at began, after earlier ones of waited_ms: 1 ms at least, as 0 would
-- mean for ever.
CREATE OR REPLACE FUNCTION fence.wait_left(began timestamptz, waited_ms integer, callers_ms integer) RETURNS text
LANGUAGE sql VOLATILE
AS $$
    SELECT greatest(1, least(
        2000 - $2 - (extract(epoch FROM clock_timestamp() - $1) * 1000)::integer,
        nullif($3, 0) - (extract(epoch FROM clock_timestamp() - $1) * 1000)::integer)) || 'ms'
$$;

-- The advisory lock on which the admissions of one key queue. One queue makes one wait, which lock_timeout can bound; a
-- row's waiters wait twice, each for its whole length.
CREATE OR REPLACE FUNCTION fence.queue_of(class text, key text) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$
    SELECT hashtextextended($1 || E'\x1f' || $2, 0)
$$;

-- Who holds a lock, a backend or a prepared transaction, in words.
CREATE OR REPLACE FUNCTION fence.describe_holder(pid integer, virtualtransaction text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(
        fence.describe_backend($1),
        'pid ' || $1,
        (SELECT format('prepared transaction %L, role %s, prepared since %s', p.gid, p.owner, p.prepared)
         FROM pg_locks l JOIN pg_prepared_xacts p ON p.transaction = l.transactionid
         WHERE l.locktype = 'transactionid' AND l.pid IS NULL AND l.virtualtransaction = $2
         LIMIT 1),
        'a prepared transaction')
$$;

-- Who holds a key: in its queue, or, past the queue, by a lock on its mark's row.
CREATE OR REPLACE FUNCTION fence.holders_of(class text, key text) RETURNS text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT string_agg(DISTINCT fence.describe_holder(l.pid, l.virtualtransaction), '; ')
    FROM pg_locks l
    WHERE l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
      AND (l.locktype = 'advisory' AND l.objsubid = 1
           AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
           AND l.classid = ((fence.queue_of($1, $2) >> 32) & 4294967295)::oid
           AND l.objid = (fence.queue_of($1, $2) & 4294967295)::oid
        OR l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock'
           AND l.transactionid = (SELECT h.xmax FROM fence.high_water h WHERE h.class = $1 AND h.key = $2))
$$;

-- What the admissions of one transaction have waited together. A sequence keeps it, because ROLLBACK TO SAVEPOINT takes
-- everything else back, and a session reads its own last value from it, whatever the others do. It holds the transaction
-- times 2^12, plus milliseconds.
CREATE SEQUENCE IF NOT EXISTS fence.waited AS bigint;

-- The milliseconds that this transaction's admissions have waited so far: 0 to 2000.
CREATE OR REPLACE FUNCTION fence.waited_ms() RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    kept bigint;
BEGIN
    kept := currval('fence.waited');
    RETURN CASE WHEN kept >> 12 = pg_current_xact_id()::text::bigint THEN kept & 4095 ELSE 0 END;
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    -- Nobody has waited in this session yet.
    RETURN 0;
END
$$;

-- Adds to it what has been waited since began.
CREATE OR REPLACE FUNCTION fence.add_waited(before_ms integer, began timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM setval('fence.waited', (pg_current_xact_id()::text::bigint << 12)
        | least(2000, before_ms + ceil(extract(epoch FROM clock_timestamp() - began) * 1000))::bigint);
END
$$;

-- Takes a key's queue for the rest of the transaction; with its mark as well, the mark's row too, where there is one, for an
-- admission or for whoever else is about to change it. The waits of one transaction are 2 s together, or as long as a stricter
-- lock_timeout of the caller allows; then 55P03, naming who holds the key. The caller's lock_timeout is the same before and
-- after.
CREATE OR REPLACE FUNCTION fence.take_queue(class text, key text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock(fence.queue_of(class, key)) THEN
        PERFORM fence.wait_for_key(class, key, false);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION fence.take_key(class text, key text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    IF pg_try_advisory_xact_lock(fence.queue_of(take_key.class, take_key.key)) THEN
        PERFORM FROM fence.high_water h WHERE h.class = take_key.class AND h.key = take_key.key FOR UPDATE SKIP LOCKED;
        IF FOUND OR NOT EXISTS (SELECT FROM fence.high_water h WHERE h.class = take_key.class AND h.key = take_key.key) THEN
            RETURN;
        END IF;
    END IF;
    PERFORM fence.wait_for_key(take_key.class, take_key.key, true);
END
$$;

-- The wait of both. A mark's row is taken by writing it as it is: one that was only locked would bear that in its next version,
-- and look locked to the next admission.
CREATE OR REPLACE FUNCTION fence.wait_for_key(class text, key text, mark_too boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    callers_setting text := current_setting('lock_timeout');
    callers_ms integer := fence.timeout_ms('lock_timeout');
    began timestamptz := clock_timestamp();
    before_ms integer := fence.waited_ms();
BEGIN
    PERFORM set_config('lock_timeout', fence.wait_left(began, before_ms, callers_ms), true);
    PERFORM pg_advisory_xact_lock(fence.queue_of(wait_for_key.class, wait_for_key.key));
    IF mark_too THEN
        PERFORM set_config('lock_timeout', fence.wait_left(began, before_ms, callers_ms), true);
        UPDATE fence.high_water h SET admitted_at = h.admitted_at
        WHERE h.class = wait_for_key.class AND h.key = wait_for_key.key;
    END IF;
    PERFORM set_config('lock_timeout', callers_setting, true), fence.add_waited(before_ms, began);
EXCEPTION
    WHEN lock_not_available THEN
        PERFORM fence.add_waited(before_ms, began);
        RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
            MESSAGE = format('class %s, key %L, is held by another transaction', wait_for_key.class, wait_for_key.key),
            DETAIL = coalesce(fence.holders_of(wait_for_key.class, wait_for_key.key), 'whoever held it has just ended'),
            HINT = 'Nothing was written. Try the whole transaction again later.';
    WHEN OTHERS OR query_canceled THEN
        -- A deadlock, or a statement that was cancelled: the caller may go on behind a savepoint.
        PERFORM fence.add_waited(before_ms, began);
        RAISE;
END
$$;

-- Bounds the rest of the transaction, unless it is bounded more strictly already: idle for 5 s at most (then the server ends
-- the connection), and an acknowledged commit is on disk.
CREATE OR REPLACE FUNCTION fence.bound_transaction() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF fence.timeout_ms('idle_in_transaction_session_timeout') NOT BETWEEN 1 AND 5000 THEN
        PERFORM set_config('idle_in_transaction_session_timeout', '5000ms', true);
    END IF;
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
END
$$;

-- fence.describe_backend and describe_holder stay open to all: they tell nothing that PostgreSQL's own views do not.
REVOKE ALL ON FUNCTION fence.timeout_ms, fence.wait_left, fence.queue_of, fence.holders_of, fence.waited_ms,
    fence.add_waited, fence.take_queue, fence.take_key, fence.wait_for_key,
    fence.bound_transaction FROM PUBLIC;
REVOKE ALL ON SEQUENCE fence.waited FROM PUBLIC;

INSERT INTO fence.migration (name) VALUES ('0004_wait.sql') ON CONFLICT DO NOTHING;
COMMIT;
