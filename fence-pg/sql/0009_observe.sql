-- Modes: what becomes of a write that a guard would refuse. A class has one, fence.class.mode, for all its tables.
--
--     SELECT fence.protect('orders', 'shop.order', 'id', mode => 'observe');
--     SELECT * FROM fence.observed;             -- who writes without admission
--     SELECT fence.enforce('shop.order');       -- from now on they are refused
--
-- observe: it is counted and let through; the class is only advisory until it is enforced. standby: the apply workers of
-- logical replication are let through and everybody else is refused, until the subscriber is promoted and the class enforced.
-- enforce: it is refused.
--
-- For operators, and written down in fence.danger_log: fence.danger_relax sets a mode that refuses less;
-- fence.danger_bypass lets the rest of one transaction write to a class's tables.
BEGIN;
SET LOCAL client_min_messages = warning;
LOCK TABLE fence.migration IN SHARE ROW EXCLUSIVE MODE;
SET LOCAL lock_timeout = '1s';

-- Who stepped past the guard, and why. It only grows.
CREATE TABLE IF NOT EXISTS fence.danger_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The top-level transaction and when it began: the evidence that this very transaction wrote the line.
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    at timestamptz NOT NULL DEFAULT transaction_timestamp(),
    role text NOT NULL,
    application_name text,
    what text NOT NULL,
    class text,
    key text,
    before text,
    after text,
    reason text NOT NULL
);
DO $$
BEGIN
    IF to_regclass('fence.danger_log_xid') IS NULL THEN
        CREATE INDEX danger_log_xid ON fence.danger_log (xid);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION fence.keep_danger_log() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
        MESSAGE = 'fence.danger_log only grows',
        HINT = 'It says who stepped past the guard, and why.';
END
$$;
DO $$
BEGIN
    PERFORM fence.keep_trigger('fence.danger_log', 'keep_danger_log',
        'BEFORE DELETE OR UPDATE OR TRUNCATE ON fence.danger_log FOR EACH STATEMENT EXECUTE FUNCTION fence.keep_danger_log()');
END
$$;

-- Writes a line of fence.danger_log.
CREATE OR REPLACE FUNCTION fence.log_danger(what text, class text, key text, before text, after text, reason text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF coalesce(btrim(reason), '') = '' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('%s needs a reason', what),
            HINT = 'Say why, for whoever reads fence.danger_log later.';
    END IF;
    INSERT INTO fence.danger_log (role, application_name, what, class, key, before, after, reason)
    VALUES (fence.acting_role(), nullif(current_setting('application_name'), ''), $1, $2, $3, $4, $5, $6);
END
$$;

-- The role that the session acts as, also inside a function that runs as its owner.
CREATE OR REPLACE FUNCTION fence.acting_role() RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(nullif(current_setting('role'), 'none'), session_user)
$$;

-- The counters of observe mode. Each writer takes one that nobody holds, or a new one: nobody waits for a counter, and there
-- are at most as many of a kind as there were writers at once (above READ COMMITTED each transaction adds its own).
CREATE TABLE IF NOT EXISTS fence.observation (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    class text NOT NULL,
    relation text NOT NULL,
    role text NOT NULL,
    application_name text NOT NULL,
    reason text NOT NULL,
    transactions bigint NOT NULL DEFAULT 1,
    first_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_key text
) WITH (fillfactor = 70);
DO $$
BEGIN
    IF to_regclass('fence.observation_kind') IS NULL THEN
        CREATE INDEX observation_kind ON fence.observation (class, relation, role, application_name, reason);
    END IF;
END
$$;

-- What would have been refused: in how many committed transactions, from when to when, and for example for which key.
CREATE OR REPLACE VIEW fence.observed AS
SELECT o.class, o.relation, o.role, o.application_name, o.reason, sum(o.transactions)::bigint AS transactions,
       min(o.first_at) AS first_at, max(o.last_at) AS last_at,
       (array_agg(o.last_key ORDER BY o.last_at DESC))[1] AS last_key
FROM fence.observation o
GROUP BY o.class, o.relation, o.role, o.application_name, o.reason;

-- The advisory lock on a class's mode: whoever is let through holds it shared to the end of its transaction, and whoever makes
-- the mode stricter takes it alone.
CREATE OR REPLACE FUNCTION fence.mode_lock(class text) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT hashtextextended('fence.class.mode' || E'\x1f' || $1, 1)
$$;

-- Whether a write that a guard would refuse is let through, and counted where the class is in observe mode.
CREATE OR REPLACE FUNCTION fence.lets_through(class text, relation regclass, reason text, key text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    mode fence.mode;
BEGIN
    IF EXISTS (SELECT FROM fence.danger_log d
               WHERE d.xid = pg_current_xact_id() AND d.at = transaction_timestamp()
                 AND d.what = 'danger_bypass' AND d.class = lets_through.class) THEN
        RETURN true;
    END IF;
    SELECT c.mode INTO mode FROM fence.class c WHERE c.name = lets_through.class;
    IF NOT FOUND OR mode = 'enforce' OR mode = 'standby' AND NOT fence.applies_changes() THEN
        RETURN false;
    END IF;
    -- Once this lock is held no stricter mode comes before this transaction's end; one that came before is seen now, or, with
    -- an older snapshot, ends this transaction with 40001.
    PERFORM pg_advisory_xact_lock_shared(fence.mode_lock(lets_through.class));
    IF current_setting('transaction_isolation') IN ('read committed', 'read uncommitted') THEN
        SELECT c.mode INTO STRICT mode FROM fence.class c WHERE c.name = lets_through.class;
    ELSE
        SELECT c.mode INTO STRICT mode FROM fence.class c WHERE c.name = lets_through.class FOR SHARE;
    END IF;
    IF mode = 'enforce' OR mode = 'standby' AND NOT fence.applies_changes() THEN
        RETURN false;
    END IF;
    IF mode = 'observe' THEN
        PERFORM fence.count_observed(lets_through.class, lets_through.relation::text, fence.acting_role(),
                                     current_setting('application_name'), lets_through.reason, lets_through.key);
    END IF;
    RETURN true;
END
$$;

-- Whether this session is an apply worker of logical replication. No session can make itself one.
CREATE OR REPLACE FUNCTION fence.applies_changes() RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT current_setting('session_replication_role') = 'replica'
       AND EXISTS (SELECT FROM pg_stat_get_subscription(NULL) s WHERE s.pid = pg_backend_pid())
$$;

-- Counts one transaction once for each kind.
CREATE OR REPLACE FUNCTION fence.count_observed(class text, relation text, role text, application_name text, reason text,
                                                key text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    -- Says that this transaction is counted already; it goes with a savepoint as the count does. Only a hint: whatever is
    -- set here, a write is let through by the mode alone.
    counted text := 'fence.observed_' || md5(concat_ws(E'\x1f', $1, $2, $5));
    slot bigint;
BEGIN
    IF current_setting(counted, true) = pg_current_xact_id()::text THEN
        RETURN;
    END IF;
    PERFORM set_config(counted, pg_current_xact_id()::text, true);
    IF current_setting('transaction_isolation') IN ('read committed', 'read uncommitted') THEN
        SELECT o.id INTO slot FROM fence.observation o
        WHERE o.class = $1 AND o.relation = $2 AND o.role = $3 AND o.application_name = $4 AND o.reason = $5
        LIMIT 1 FOR UPDATE SKIP LOCKED;
    END IF;
    IF slot IS NULL THEN
        INSERT INTO fence.observation (class, relation, role, application_name, reason, last_key)
        VALUES ($1, $2, $3, $4, $5, $6);
    ELSE
        UPDATE fence.observation o SET transactions = o.transactions + 1, last_at = clock_timestamp(), last_key = $6
        WHERE o.id = slot;
    END IF;
END
$$;

-- From the next statement on, every write to a class's tables that is not admitted is refused. It waits at most 1 s for the
-- transactions that were let through, and then says which are in the way (55P03): when it returns and its transaction has
-- committed, none of them can commit any more. Commit at once, as they wait meanwhile.
CREATE OR REPLACE FUNCTION fence.enforce(class text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM fence.lock_class(class);
    PERFORM fence.tighten(class, 'enforce');
END
$$;

-- Sets the mode that protect was called with.
CREATE OR REPLACE FUNCTION fence.choose_mode(class text, mode fence.mode) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    present fence.mode := (SELECT c.mode FROM fence.class c WHERE c.name = $1);
BEGIN
    IF mode IS NULL OR mode = present THEN
        IF mode IS NULL AND present <> 'enforce' THEN
            RAISE NOTICE USING
                MESSAGE = format('class %s is in mode %s: writes without admission are not refused yet', class, present),
                HINT = format('SELECT * FROM fence.observed shows them. Then: SELECT fence.enforce(%L).', class);
        END IF;
    ELSIF mode > present THEN
        PERFORM fence.tighten(class, mode);
    ELSIF EXISTS (SELECT FROM fence.guarded g WHERE g.class = $1)
          OR EXISTS (SELECT FROM fence.guard_trigger t WHERE t.class = $1) THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format('class %s is in mode %s, and guards tables already', class, present),
            HINT = format('A class has one mode: protect the table without one, for a class of its own, or say for all of them: '
                          'SELECT fence.danger_relax(%L, %L, ''REASON'').', class, mode);
    ELSIF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format('class %s is set from mode %s to %s at READ COMMITTED only', class, present, mode),
            HINT = 'Above it, a table guarded since the snapshot would not be seen. Use a transaction of its own.';
    ELSE
        UPDATE fence.class c SET mode = $2 WHERE c.name = $1;
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION fence.tighten(class text, mode fence.mode) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    callers_setting text := current_setting('lock_timeout');
    began timestamptz := clock_timestamp();
    its_lock bigint := fence.mode_lock(tighten.class);
    present fence.mode;
    offender record;
BEGIN
    SELECT c.mode INTO present FROM fence.class c WHERE c.name = tighten.class;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF007', MESSAGE = format('class %L is not declared', tighten.class),
            HINT = 'SELECT name, mode FROM fence.class lists the classes.';
    END IF;
    IF EXISTS (SELECT FROM pg_locks l
               WHERE l.granted AND l.pid = pg_backend_pid() AND l.locktype = 'advisory' AND l.objsubid = 1
                 AND l.mode = 'ShareLock' AND l.classid = ((its_lock >> 32) & 4294967295)::oid
                 AND l.objid = (its_lock & 4294967295)::oid) THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format('class %s has let a write of this very transaction through', tighten.class),
            HINT = 'Call it in a transaction of its own.';
    END IF;
    BEGIN
        PERFORM set_config('lock_timeout', fence.left_of_second(began, callers_setting), true);
        PERFORM pg_advisory_xact_lock(its_lock);
        PERFORM set_config('lock_timeout', fence.left_of_second(began, callers_setting), true);
        UPDATE fence.class c SET mode = tighten.mode WHERE c.name = tighten.class AND c.mode < tighten.mode;
    EXCEPTION WHEN lock_not_available THEN
        RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
            MESSAGE = format('transactions that class %s has let through are still open', tighten.class),
            DETAIL = coalesce(
                (SELECT string_agg(DISTINCT fence.describe_holder(l.pid, l.virtualtransaction), '; ')
                 FROM pg_locks l
                 WHERE l.granted AND l.pid IS DISTINCT FROM pg_backend_pid() AND l.locktype = 'advisory' AND l.objsubid = 1
                   AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
                   AND l.classid = ((its_lock >> 32) & 4294967295)::oid AND l.objid = (its_lock & 4294967295)::oid),
                'they have just ended'),
            HINT = format('The class stays in mode %s. Try again when they have ended.', present);
    END;
    PERFORM set_config('lock_timeout', callers_setting, true);
    FOR offender IN SELECT o.* FROM fence.observed o
                    WHERE o.class = tighten.class AND o.last_at > clock_timestamp() - interval '1 day'
                    ORDER BY o.transactions DESC LIMIT 5 LOOP
        RAISE NOTICE USING MESSAGE = format(
            'refused from now on: %s, role %s, application %L: %s, %s transactions, the last at %s', offender.relation,
            offender.role, offender.application_name, offender.reason, offender.transactions, offender.last_at);
    END LOOP;
END
$$;

-- Sets a mode that refuses less. Written down, with the reason.
CREATE OR REPLACE FUNCTION fence.danger_relax(class text, mode fence.mode, reason text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    present fence.mode;
BEGIN
    PERFORM fence.lock_class(danger_relax.class);
    SELECT c.mode INTO present FROM fence.class c WHERE c.name = danger_relax.class FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF007', MESSAGE = format('class %L is not declared', danger_relax.class),
            HINT = 'SELECT name, mode FROM fence.class lists the classes.';
    END IF;
    IF danger_relax.mode >= present THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('class %s is in mode %s, which refuses no more than %s', danger_relax.class, present,
                             danger_relax.mode),
            HINT = format('To refuse more: SELECT fence.enforce(%L).', danger_relax.class);
    END IF;
    PERFORM fence.log_danger('danger_relax', danger_relax.class, NULL, present::text, danger_relax.mode::text,
                             danger_relax.reason);
    UPDATE fence.class c SET mode = danger_relax.mode WHERE c.name = danger_relax.class;
END
$$;

-- For the rest of this transaction, or until a savepoint set before this call is rolled back to, the guards of a class let
-- every write through. Written down, with the reason, in the same transaction: a line that is rolled back let nothing through.
CREATE OR REPLACE FUNCTION fence.danger_bypass(class text, reason text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM fence.class c WHERE c.name = danger_bypass.class) THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF007', MESSAGE = format('class %L is not declared', class),
            HINT = 'SELECT name, mode FROM fence.class lists the classes.';
    END IF;
    PERFORM fence.log_danger('danger_bypass', class, NULL, NULL, NULL, reason);
END
$$;

-- Brings the triggers of an older installation, and the functions behind them, up to date.
DO $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT DISTINCT t.class, t.key_columns FROM fence.guard_trigger t WHERE t.guard = 'mark' LOOP
        PERFORM fence.lock_class(one.class);
        PERFORM fence.guard_function(one.class, one.key_columns);
    END LOOP;
    FOR one IN SELECT t.* FROM fence.guard_trigger t
                 WHERE NOT t.of_parent
                   AND (NOT EXISTS (SELECT FROM fence.guarded g WHERE g.relation = t.relation AND g.guard = t.guard))
                   AND NOT EXISTS (SELECT FROM pg_inherits i JOIN fence.guard_trigger p ON p.relation = i.inhparent
                                   WHERE i.inhrelid = t.relation AND p.guard = t.guard) LOOP
        IF one.guard = 'mark' THEN
            PERFORM fence.attach(one.relation, one.class, one.key_columns, NULL);
        ELSE
            PERFORM fence.attach_column(one.relation, one.class, one.key_columns[1], one.token_column, NULL);
        END IF;
    END LOOP;
END
$$;
DROP FUNCTION IF EXISTS fence.enforce(), fence.require_admitted(text, text, regclass), fence.tree_of(regclass),
    fence.require_table(regclass), fence.protect(text, regclass, name[]), fence.protect_column(text, regclass, name, name);

REVOKE ALL ON FUNCTION fence.keep_danger_log, fence.log_danger, fence.acting_role, fence.mode_lock, fence.lets_through,
    fence.applies_changes, fence.count_observed, fence.enforce(text), fence.choose_mode, fence.tighten, fence.danger_relax,
    fence.danger_bypass FROM PUBLIC;

INSERT INTO fence.migration (name) VALUES ('0009_observe.sql') ON CONFLICT DO NOTHING;
COMMIT;
