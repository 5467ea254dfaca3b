-- Leases. Every function here and in the files after this one is one statement, and commits by itself.
BEGIN;

-- What each of these functions needs of its transaction.
CREATE OR REPLACE FUNCTION fence_lock.begin_step() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- Each statement below must see what was committed while the one before it waited.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a lock is taken at isolation level read committed, not %', current_setting('transaction_isolation')
            USING ERRCODE = 'invalid_transaction_state', HINT = 'SET TRANSACTION ISOLATION LEVEL READ COMMITTED';
    END IF;
    -- A crash must not take back a renewal, a grant or a token that was answered.
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION fence_lock.is_live(asked text) RETURNS boolean
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM fence_lock.session s WHERE s.session = asked AND s.expires_at > clock_timestamp())
$$;

-- Ends a session that has expired. True when it is gone, then or before. A renewal that is on its way to commit is waited
-- for, and wins: a session that was ended is never renewed, one that was renewed is never ended.
CREATE OR REPLACE FUNCTION fence_lock.end_lapsed(asked text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM fence_lock.session s WHERE s.session = asked AND s.expires_at <= clock_timestamp();
    RETURN NOT EXISTS (SELECT FROM fence_lock.session s WHERE s.session = asked);
END $$;

-- Wakes the first living waiter for a lock, if there is one.
CREATE OR REPLACE FUNCTION fence_lock.wake(freed_class text, freed_key text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    first record;
BEGIN
    SELECT w.channel, w.grant_id INTO first
    FROM fence_lock.waiter w JOIN fence_lock.session s USING (session)
    WHERE w.class = freed_class AND w.key = freed_key AND s.expires_at > clock_timestamp()
    ORDER BY w.place LIMIT 1;
    IF first.channel IS NOT NULL THEN
        PERFORM pg_notify(first.channel, first.grant_id);
    END IF;
END $$;

-- Opens a lease. Leases that have been over for an hour, and that nobody needed to end, are swept up on the way.
CREATE OR REPLACE FUNCTION fence_lock.open(opened text, ttl_ms bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    opened_now timestamptz := clock_timestamp();
    granted interval := ttl_ms * interval '1 ms';
BEGIN
    PERFORM fence_lock.begin_step();
    DELETE FROM fence_lock.session WHERE session IN (
        SELECT s.session FROM fence_lock.session s
        WHERE s.expires_at < opened_now - interval '1 h' LIMIT 100 FOR UPDATE SKIP LOCKED
    );
    INSERT INTO fence_lock.session (session, ttl, opened_at, expires_at, application_name)
    VALUES (opened, granted, opened_now, opened_now + granted, current_setting('application_name'));
END $$;

-- Renews a lease that has not expired: the milliseconds that it lives from now on, or NULL when it is over.
CREATE OR REPLACE FUNCTION fence_lock.renew(renewed text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    lives interval;
BEGIN
    PERFORM fence_lock.begin_step();
    UPDATE fence_lock.session s SET expires_at = clock_timestamp() + s.ttl
    WHERE s.session = renewed AND s.expires_at > clock_timestamp()
    RETURNING s.ttl INTO lives;
    RETURN round(extract(epoch FROM lives) * 1000);
END $$;

-- Ends a lease, and with it every hold and every place. One that is gone is no error.
CREATE OR REPLACE FUNCTION fence_lock.close(closed text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    classes text[];
    keys text[];
BEGIN
    PERFORM fence_lock.begin_step();
    -- In the order in which every other function locks them.
    PERFORM FROM fence_lock.lock l WHERE l.session = closed ORDER BY l.class, l.key FOR UPDATE;
    SELECT array_agg(f.class), array_agg(f.key) INTO classes, keys FROM (
        SELECT l.class, l.key FROM fence_lock.lock l WHERE l.session = closed
        UNION SELECT w.class, w.key FROM fence_lock.waiter w WHERE w.session = closed
    ) f;
    UPDATE fence_lock.lock l SET grant_id = NULL, session = NULL WHERE l.session = closed;
    DELETE FROM fence_lock.session s WHERE s.session = closed;
    PERFORM fence_lock.wake(f.class, f.key) FROM unnest(classes, keys) AS f (class, key);
END $$;

COMMIT;
