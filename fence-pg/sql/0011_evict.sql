-- Who is in the way of a key, and freeing it.
--
--     SELECT * FROM fence.blockers('paydb.account', 'acct-1');
--     SELECT * FROM fence.evict('paydb.account', 'acct-1', 562949953421400);
--
-- Ending another role's backend needs that role's membership, or pg_signal_backend; a superuser's needs a superuser. Run it
-- as a role that has it: evict works with its caller's rights, and says what they lack.
BEGIN;
SET LOCAL client_min_messages = warning;
LOCK TABLE fence.migration IN SHARE ROW EXCLUSIVE MODE;
SET LOCAL lock_timeout = '1s';

-- What may be known of a key from its mark: the committed token, the class's tier and floor, the key's queue, and the
-- transaction id that stands in the row as its locker.
CREATE OR REPLACE FUNCTION fence.mark_of(class text, key text)
RETURNS TABLE (token bigint, tier text, floor bigint, queue bigint, locker xid)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT h.token, c.tier, c.floor, fence.queue_of($1, $2), h.xmax
    FROM fence.class c LEFT JOIN fence.high_water h ON h.class = c.name AND h.key = $2
    WHERE c.name = $1
$$;

-- The transactions among the members of a row's locker, which may be many at once.
CREATE OR REPLACE FUNCTION fence.lockers_of(locker xid) RETURNS SETOF xid
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN NEXT locker;
    -- The row does not say which kind of id it is.
    RETURN QUERY SELECT m.xid FROM pg_get_multixact_members(locker) m;
EXCEPTION WHEN OTHERS THEN
    RETURN;
END
$$;

-- A transaction id in full, from the lower half that a lock shows: the nearest one to those that are running.
CREATE OR REPLACE FUNCTION fence.full_xid(short xid) RETURNS xid8
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT (CASE WHEN x.whole - x.near > 2147483648 THEN x.whole - 4294967296
                 WHEN x.near - x.whole > 2147483648 THEN x.whole + 4294967296
                 ELSE x.whole END)::text::xid8
    FROM (SELECT n.near, (n.near & ~4294967295) | $1::text::bigint AS whole
          FROM (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS near) n) x
$$;

-- Every transaction that holds a key against others: in its queue, or by a lock on its mark's row. pid is NULL for a prepared
-- transaction. What the calling role may not see of a backend is left out of detail.
CREATE OR REPLACE FUNCTION fence.blockers(class text, key text)
RETURNS TABLE (pid integer, virtual_transaction text, transaction xid8, prepared text, detail text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    WITH mark AS MATERIALIZED (SELECT * FROM fence.mark_of($1, $2)),
    held AS (
        SELECT DISTINCT l.pid, l.virtualtransaction
        FROM mark, pg_locks l
        WHERE l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
          AND (l.locktype = 'advisory' AND l.objsubid = 1
               AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
               AND l.classid = ((mark.queue >> 32) & 4294967295)::oid AND l.objid = (mark.queue & 4294967295)::oid
            OR l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock'
               AND l.transactionid IN (SELECT fence.lockers_of(mark.locker)))
    )
    SELECT h.pid, h.virtualtransaction,
           (SELECT min(fence.full_xid(l.transactionid)::text::numeric)::text::xid8 FROM pg_locks l
            WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted
              AND l.virtualtransaction = h.virtualtransaction AND l.pid IS NOT DISTINCT FROM h.pid),
           (SELECT p.gid FROM pg_locks l JOIN pg_prepared_xacts p ON p.transaction = l.transactionid
            WHERE h.pid IS NULL AND l.pid IS NULL AND l.locktype = 'transactionid'
              AND l.virtualtransaction = h.virtualtransaction LIMIT 1),
           fence.describe_holder(h.pid, h.virtualtransaction)
    FROM held h
$$;

-- Frees a key for whoever holds the newer token that is presented: ends every backend that holds the key, and waits up to 2 s
-- for each. One row for each holder, or one that says nobody:
--   evicted      it is gone, and its transaction was rolled back
--   committed    it is gone, and its transaction had been committed, or was while it was ended
--   prepared     a prepared transaction, which no backend holds: detail says how an operator ends it
--   still there  it was not ended: the caller's rights lack, or the backend does not answer; detail says which
--   nobody       nobody held the key, or whoever did had just ended by itself
-- The token has to be above the key's committed mark, and inside a registered range. A holder that has raised the mark and
-- not yet committed cannot be asked for its own token: ended, it is rolled back and comes again.
CREATE OR REPLACE FUNCTION fence.evict(class text, key text, presented bigint)
RETURNS TABLE (pid integer, transaction text, outcome text, detail text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    holder record;
    found_any boolean := false;
BEGIN
    PERFORM fence.require_above(evict.class, evict.key, evict.presented);
    FOR holder IN SELECT * FROM fence.blockers(evict.class, evict.key) LOOP
        found_any := true;
        pid := holder.pid;
        transaction := coalesce(holder.transaction::text, holder.virtual_transaction);
        SELECT e.outcome, e.detail INTO outcome, detail
        FROM fence.end_holder(evict.class, evict.key, holder.pid, holder.virtual_transaction, holder.transaction,
                              holder.prepared, holder.detail) e;
        -- Nobody waits for a standby to have this line: the standby may be why the key is held.
        PERFORM set_config('synchronous_commit', 'local', true) WHERE current_setting('synchronous_commit') <> 'off';
        PERFORM fence.log_danger('evict', evict.class, evict.key, evict.detail, evict.outcome,
                                 format('token %s was presented', evict.presented));
        RETURN NEXT;
    END LOOP;
    IF NOT found_any THEN
        pid := NULL;
        transaction := NULL;
        outcome := 'nobody';
        detail := 'nobody holds the key';
        RETURN NEXT;
    END IF;
END
$$;

-- Refuses a token that gives no right to evict.
CREATE OR REPLACE FUNCTION fence.require_above(class text, key text, presented bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    mark record;
    seen bigint;
BEGIN
    PERFORM fence.require_latest('a key is freed');
    IF require_above.presented IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF002', MESSAGE = 'missing fencing token', DETAIL = 'missing fencing token',
            HINT = 'Present the token of the newer grant, for which the key is to be free.';
    END IF;
    IF require_above.presented < 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF003', MESSAGE = format('token %s is below 1', require_above.presented),
            DETAIL = format('presented %s', require_above.presented), HINT = 'Tokens are 1 to 9223372036854775807.';
    END IF;
    SELECT * INTO mark FROM fence.mark_of(require_above.class, require_above.key);
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF007', MESSAGE = format('class %L is not declared', require_above.class),
            HINT = 'A typing error? SELECT name, tier FROM fence.class lists the classes.';
    END IF;
    seen := greatest(mark.token, mark.floor);
    IF require_above.presented < seen THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF001',
            MESSAGE = format('stale token for class %s, key %L', require_above.class, require_above.key),
            DETAIL = format('presented %s, seen %s', require_above.presented, seen),
            HINT = 'A newer holder has been here. Stop this work; do not fetch a newer token for it.';
    END IF;
    IF require_above.presented = mark.token THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format('token %s is the key''s own mark: its holder is not evicted by itself', require_above.presented),
            HINT = 'Present the token of a newer grant.';
    END IF;
    IF mark.tier IS NOT NULL AND NOT EXISTS (
        SELECT FROM fence.epoch_range r
        WHERE r.tier = mark.tier AND require_above.presented BETWEEN r.first AND r.ceiling
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF005',
            MESSAGE = format('token %s lies outside every range registered for tier %s', require_above.presented, mark.tier),
            DETAIL = format('presented %s', require_above.presented),
            HINT = fence.explain_range(mark.tier, require_above.presented);
    END IF;
END
$$;

-- Ends one holder, if it is still the same transaction of the same backend, and waits for the end.
CREATE OR REPLACE FUNCTION fence.end_holder(class text, key text, holder_pid integer, virtual_transaction text,
                                            transaction xid8, prepared text, described text)
RETURNS TABLE (outcome text, detail text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    began timestamptz;
    signalled boolean;
BEGIN
    IF holder_pid IS NULL THEN
        RETURN QUERY SELECT 'prepared', described || format(
            '; decided by whoever runs its other half, or by hand, in its own database: ROLLBACK PREPARED %1$L, or COMMIT PREPARED %1$L',
            coalesce(prepared, 'GID'));
        RETURN;
    END IF;
    BEGIN
        -- Asked again and signalled in one step: the pid may be another's by now, or at another transaction.
        SELECT pg_terminate_backend(holder_pid) INTO signalled
        WHERE fence.still_holds(end_holder.class, end_holder.key, holder_pid, virtual_transaction);
    EXCEPTION WHEN insufficient_privilege THEN
        RETURN QUERY SELECT 'still there', format('%s; role %I may not end it: %s. It needs the holder''s role, or '
            'pg_signal_backend; a superuser''s backend, a superuser', described, current_user, SQLERRM);
        RETURN;
    END;
    began := clock_timestamp();
    WHILE fence.is_running(holder_pid, virtual_transaction) LOOP
        IF signalled IS NULL THEN
            -- It runs, and has let the key go.
            RETURN QUERY SELECT 'nobody', described || '; it had just let go of the key';
            RETURN;
        END IF;
        IF clock_timestamp() - began > interval '2 s' THEN
            RETURN QUERY SELECT 'still there', described || '; it was told to end and does not answer: its process is '
                'stopped, or waits in the system, and only its machine can free it';
            RETURN;
        END IF;
        PERFORM pg_sleep(0.005);
    END LOOP;
    RETURN QUERY SELECT r.outcome, r.detail FROM fence.after_the_end(transaction, signalled, described) r;
END
$$;

-- How a holder's transaction ended.
CREATE OR REPLACE FUNCTION fence.after_the_end(transaction xid8, signalled boolean, described text)
RETURNS TABLE (outcome text, detail text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    gid text;
    status text := pg_xact_status(transaction);
BEGIN
    SELECT p.gid INTO gid FROM pg_prepared_xacts p WHERE fence.full_xid(p.transaction) = after_the_end.transaction;
    IF FOUND THEN
        RETURN QUERY SELECT 'prepared', described || format('; it was prepared meanwhile: ROLLBACK PREPARED %1$L, or '
            'COMMIT PREPARED %1$L', gid);
    ELSIF status = 'committed' THEN
        RETURN QUERY SELECT 'committed', described || '; its transaction is committed';
    ELSIF signalled THEN
        RETURN QUERY SELECT 'evicted', described || '; its transaction is rolled back';
    ELSE
        RETURN QUERY SELECT 'nobody', described || '; it had just ended, and its transaction is rolled back';
    END IF;
END
$$;

-- Whether this very transaction of this backend holds the key now.
CREATE OR REPLACE FUNCTION fence.still_holds(class text, key text, holder_pid integer, virtual_transaction text)
RETURNS boolean
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT EXISTS (SELECT FROM fence.blockers($1, $2) b WHERE b.pid = $3 AND b.virtual_transaction = $4)
$$;

-- Whether this transaction of this backend has not ended: its own lock on itself is there.
CREATE OR REPLACE FUNCTION fence.is_running(holder_pid integer, virtual_transaction text) RETURNS boolean
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT EXISTS (SELECT FROM pg_locks l WHERE l.pid = $1 AND l.virtualtransaction = $2)
$$;

REVOKE ALL ON FUNCTION fence.mark_of, fence.lockers_of, fence.full_xid, fence.blockers, fence.evict, fence.require_above,
    fence.end_holder, fence.after_the_end, fence.still_holds, fence.is_running FROM PUBLIC;

INSERT INTO fence.migration (name) VALUES ('0011_evict.sql') ON CONFLICT DO NOTHING;
COMMIT;
