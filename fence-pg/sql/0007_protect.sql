-- Enforcement of the mark guard: a table on which every write, from any language or from psql, is refused unless its
-- transaction admitted the row's key, in an earlier statement.
--
--     SELECT fence.protect('transfer', 'paydb.account', 'from_account');
--     SELECT fence.protect('seat', 'show.seat', 'hall', 'no');
--     SELECT fence.protect('orders', 'shop.order', 'id', mode => 'observe');    -- counts and lets through: see 0009_observe.sql
--     SELECT fence.unprotect('transfer');
--
-- Run it as the role that installed this, which must own the table. It rewrites nothing, and waits at most 1 s for the table:
-- then 55P03 says who is in the way. The table takes no writes until the calling transaction ends: commit at once. Whoever else
-- changes the class's guards or mode meanwhile waits in the same way.
--
-- Covered: the table, its partitions and those made or attached later, and the tables that inherit from it by now. Called
-- again with the same arguments it covers tables that have come to inherit from it, and TRUNCATE of partitions made since, and
-- switches on triggers that are off or less than ALWAYS, as pg_restore --disable-triggers leaves them.
-- Not covered, as the owner's own doing: DDL, such as DISABLE TRIGGER, or DETACH PARTITION, which takes the guard off.
BEGIN;
SET LOCAL client_min_messages = warning;
LOCK TABLE fence.migration IN SHARE ROW EXCLUSIVE MODE;
SET LOCAL lock_timeout = '1s';

-- What a class does with a write that its guards would refuse: count it and let it through; let only logical replication's
-- apply workers through; refuse it.
DO $$
BEGIN
    CREATE TYPE fence.mode AS ENUM ('observe', 'standby', 'enforce');
EXCEPTION WHEN duplicate_object THEN
    NULL;
END
$$;
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_attribute a
                   WHERE a.attrelid = 'fence.class'::regclass AND a.attname = 'mode' AND NOT a.attisdropped) THEN
        ALTER TABLE fence.class ADD COLUMN mode fence.mode NOT NULL DEFAULT 'enforce';
    END IF;
END
$$;

-- The tables that protect and protect_column were called for, until they are unprotected: what ought to be guarded.
-- fence.guard_trigger is what is.
CREATE TABLE IF NOT EXISTS fence.guarded (
    relation regclass NOT NULL,
    guard text NOT NULL CHECK (guard IN ('mark', 'column')),
    -- As it was called when it was protected.
    name text NOT NULL,
    class text NOT NULL REFERENCES fence.class (name),
    key_columns name[] NOT NULL,
    token_column name,
    protected_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (relation, guard)
);

-- A trigger's arguments, in their order: each ends in a zero byte.
CREATE OR REPLACE FUNCTION fence.arguments_of(tgargs bytea) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT array_agg(convert_from(decode(a.hex, 'hex'), getdatabaseencoding()) ORDER BY a.n)
    FROM unnest(trim_array(string_to_array(regexp_replace(encode($1, 'hex'), '(..)', E'\\1 ', 'g'), '00 '), 1))
         WITH ORDINALITY AS a (hex, n)
$$;

-- The row triggers of both guards, on every table, partition and heir that has them.
CREATE OR REPLACE VIEW fence.guard_trigger AS
SELECT t.tgrelid::regclass AS relation,
       CASE t.tgname WHEN 'fence_enforce' THEN 'mark' ELSE 'column' END AS guard,
       a.arguments[1] AS class,
       (CASE t.tgname WHEN 'fence_enforce' THEN a.arguments[2:] ELSE a.arguments[2:2] END)::name[] AS key_columns,
       (CASE t.tgname WHEN 'fence_column' THEN a.arguments[3] END)::name AS token_column,
       t.tgenabled = 'A' AS always,
       t.tgparentid <> 0 AS of_parent,
       t.tgfoid::regproc AS function,
       -- The mark guard's fires after INSERT, UPDATE and DELETE of every row, and on no condition.
       t.tgname <> 'fence_enforce' OR t.tgtype = 29 AND t.tgqual IS NULL AND t.tgattr::text = '' AS whole
FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
     CROSS JOIN LATERAL (SELECT fence.arguments_of(t.tgargs)) AS a (arguments)
WHERE t.tgname IN ('fence_enforce', 'fence_column') AND p.pronamespace = 'fence'::regnamespace;

-- The key of a row of a trigger, NEW or OLD, as an expression in fence.key's form; it is NULL where a part is.
CREATE OR REPLACE FUNCTION fence.key_expression(row_name text, key_columns name[]) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN cardinality($2) = 1 THEN format('%s.%I::text', $1, $2[1]) ELSE (
        SELECT string_agg(format($f$replace(replace(%s.%I::text, E'\\', E'\\\\'), '/', E'\\/')$f$, $1, c.name),
                          $f$ || '/' || $f$ ORDER BY c.n)
        FROM unnest($2) WITH ORDINALITY AS c (name, n)) END
$$;

-- The statements with which a trigger asks for the admission of one of its rows. The key goes through a variable, which has the
-- database's collation and not its column's.
CREATE OR REPLACE FUNCTION fence.asking(class text, key_expression text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT format($f$
        written := %2$s;
        PERFORM FROM fence.high_water h
        WHERE h.class = %1$L AND h.key = written
          AND h.admitted_xid = pg_current_xact_id() AND h.admitted_at = transaction_timestamp();
        IF NOT FOUND THEN
            PERFORM fence.unadmitted(%1$L, written, TG_RELID);
        END IF;$f$, $1, $2)
$$;

-- The name of the trigger function for the rows of a class with these key columns.
CREATE OR REPLACE FUNCTION fence.guard_name(class text, key_columns name[]) RETURNS name
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    parts text[] := class || key_columns::text[];
BEGIN
    -- Parts that hold the separator are told apart by their lengths. No class has an empty name: no other parts read so.
    RETURN 'guard_' || left(md5(
        CASE WHEN position(E'\x1f' IN array_to_string(parts, '')) = 0 THEN array_to_string(parts, E'\x1f')
             ELSE (SELECT string_agg(E'\x1f' || length(p.part) || ':' || p.part, '' ORDER BY p.n)
                   FROM unnest(parts) WITH ORDINALITY AS p (part, n)) END), 16);
END
$$;

-- Its body. The names are written in, as it runs for every row; tables of one class and the same key columns share it.
--
-- It runs after the row is written: before it, another trigger could still change the key. It is STABLE: it sees what the
-- writing statement sees. An admission inside that very statement is none, as the statement's snapshot is older than it.
CREATE OR REPLACE FUNCTION fence.guard_source(class text, key_columns name[]) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    old_key text := fence.key_expression('OLD', key_columns);
    new_key text := fence.key_expression('NEW', key_columns);
BEGIN
    RETURN format('
DECLARE
    written text;
BEGIN
    IF TG_OP <> ''DELETE'' THEN%s
    END IF;
    IF TG_OP = ''DELETE'' OR TG_OP = ''UPDATE'' AND %s IS DISTINCT FROM %s THEN%s
    END IF;
    RETURN NULL;
END
', fence.asking(class, new_key), old_key, new_key, fence.asking(class, old_key));
END
$$;

-- That function, created or brought up to date by this call.
CREATE OR REPLACE FUNCTION fence.guard_function(class text, key_columns name[]) RETURNS regproc
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    name name := fence.guard_name(class, key_columns);
BEGIN
    EXECUTE format('
CREATE OR REPLACE FUNCTION fence.%I() RETURNS trigger
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS %L', name, fence.guard_source(class, key_columns));
    EXECUTE format('REVOKE ALL ON FUNCTION fence.%I FROM PUBLIC', name);
    EXECUTE format('COMMENT ON FUNCTION fence.%I IS %L', name,
                   format('guards rows of class %s by %s', class, array_to_string(key_columns, ', ')));
    RETURN format('fence.%I', name)::regproc;
END
$$;

-- What happens to a row whose key this transaction has not admitted: it is let through where the class's mode says so, or
-- refused. ZF006 when its key is NULL or another key of the class was admitted, otherwise ZF002.
CREATE OR REPLACE FUNCTION fence.unadmitted(class text, key text, relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    first_key text := fence.first_admitted(unadmitted.class);
    -- This function sees what the trigger did not: an admission inside the writing statement.
    reason text := CASE
        WHEN unadmitted.key IS NULL THEN 'key is null'
        WHEN EXISTS (SELECT FROM fence.high_water h
                     WHERE h.class = unadmitted.class AND h.key = unadmitted.key
                       AND h.admitted_xid = pg_current_xact_id() AND h.admitted_at = transaction_timestamp())
        THEN 'admitted in the same statement'
        WHEN first_key IS NOT NULL THEN 'wrong key'
        ELSE 'not admitted' END;
BEGIN
    IF fence.lets_through(unadmitted.class, unadmitted.relation, reason, unadmitted.key) THEN
        RETURN;
    END IF;
    CASE reason
    WHEN 'key is null' THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF006',
            MESSAGE = format('wrong key: a row of %s of class %s has none, a key column is NULL',
                             unadmitted.relation, unadmitted.class),
            DETAIL = format('class %s, key NULL', unadmitted.class),
            HINT = 'A row without a key cannot be guarded: SET NOT NULL on the key columns.';
    WHEN 'wrong key' THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF006',
            MESSAGE = format('wrong key: %s of class %s, key %L, was written, and another key was admitted',
                             unadmitted.relation, unadmitted.class, unadmitted.key),
            DETAIL = format('class %s, key %L; first admitted was key %L',
                            unadmitted.class, unadmitted.key, first_key),
            HINT = 'Admit the key of every row that is written, in its canonical text: an integer as 42, never as 042.';
    WHEN 'admitted in the same statement' THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF002',
            MESSAGE = format('missing admission: %s of class %s, key %L, was written by the very statement that admitted it',
                             unadmitted.relation, unadmitted.class, unadmitted.key),
            DETAIL = 'missing fencing token',
            HINT = 'A statement keeps the snapshot that it took before it waited for the key. Call fence.admit in a '
                   'statement of its own, before the write, in the same transaction.';
    ELSE
        RAISE EXCEPTION USING ERRCODE = 'ZF002',
            MESSAGE = format('missing admission: %s of class %s, key %L, was written without one',
                             unadmitted.relation, unadmitted.class, unadmitted.key),
            DETAIL = 'missing fencing token',
            HINT = 'Call fence.admit(class, key, token, grant_id) first, in the same transaction.';
    END CASE;
END
$$;

-- Argument: class. TRUNCATE names no key, and no row either: neither OLD nor NEW is read here.
CREATE OR REPLACE FUNCTION fence.refuse_truncate() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF TG_NARGS > 0 AND fence.lets_through(TG_ARGV[0], TG_RELID, 'truncate', NULL) THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'ZF002',
        MESSAGE = format('missing admission: TRUNCATE of %s names no key', TG_RELID::regclass),
        DETAIL = 'missing fencing token',
        HINT = 'DELETE the rows of each key that was admitted.';
END
$$;

-- Guards a table for a class. Unless the class is declared it is now, without a tier, and a NOTICE says so. The class keeps its
-- mode; that of a new one is enforce.
CREATE OR REPLACE FUNCTION fence.protect(guarded regclass, class text, VARIADIC key_columns name[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM fence.require_installer();
    PERFORM fence.attach($1, $2, $3, NULL);
END
$$;

-- The same, and sets the class's mode. That needs danger_relax where it would switch off what is in force.
CREATE OR REPLACE FUNCTION fence.protect(guarded regclass, class text, key_column name, mode fence.mode) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM fence.require_installer();
    PERFORM fence.attach($1, $2, ARRAY[$3], $4);
END
$$;

CREATE OR REPLACE FUNCTION fence.protect(guarded regclass, class text, key_columns name[], mode fence.mode) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM fence.require_installer();
    PERFORM fence.attach($1, $2, $3, $4);
END
$$;

CREATE OR REPLACE FUNCTION fence.attach(guarded regclass, class text, key_columns name[], mode fence.mode) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    members regclass[];
    key_column name;
    member regclass;
    present record;
BEGIN
    PERFORM fence.lock_class(class);
    members := fence.members_of(guarded);
    PERFORM fence.require_tables(guarded, members);
    IF coalesce(cardinality(key_columns), 0) = 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('no key column of %s is named', guarded),
            HINT = 'Name the columns that the key consists of: SELECT fence.protect(''TABLE'', ''CLASS'', ''COLUMN'').';
    END IF;
    FOREACH key_column IN ARRAY key_columns LOOP
        PERFORM fence.require_key_column(guarded, key_column);
    END LOOP;
    PERFORM fence.declare_guarded(class);
    PERFORM fence.guard_function(class, key_columns);
    PERFORM fence.choose_mode(class, mode);
    PERFORM fence.lock_tables(members, 'SHARE ROW EXCLUSIVE');

    -- All of them first: a parent's new trigger takes the place of its partitions' own.
    FOREACH member IN ARRAY members LOOP
        SELECT t.class, t.key_columns INTO present FROM fence.guard_trigger t
        WHERE t.relation = member AND t.guard = 'mark';
        IF FOUND AND (present.class <> class OR present.key_columns <> key_columns) THEN
            RAISE EXCEPTION USING ERRCODE = 'duplicate_object',
                MESSAGE = format('%s is already guarded, for another class or by other key columns', member),
                DETAIL = format('class %s, by %s', present.class, array_to_string(present.key_columns, ', ')),
                HINT = format('To change that, first SELECT fence.unprotect(%L), in one transaction with this.', member);
        END IF;
    END LOOP;
    FOREACH member IN ARRAY members LOOP
        SELECT t.of_parent, t.whole, t.function INTO present FROM fence.guard_trigger t
        WHERE t.relation = member AND t.guard = 'mark';
        -- A partition has its parent's trigger, a table that only inherits needs its own.
        IF NOT FOUND OR NOT present.of_parent
            AND (NOT present.whole OR present.function <> fence.guard_function(class, key_columns)) THEN
            EXECUTE format('CREATE OR REPLACE TRIGGER fence_enforce AFTER INSERT OR UPDATE OR DELETE ON %s
                            FOR EACH ROW EXECUTE FUNCTION %s(%s)', member, fence.guard_function(class, key_columns),
                           (SELECT string_agg(quote_literal(a.argument), ', ' ORDER BY a.n)
                            FROM unnest(class || key_columns::text[]) WITH ORDINALITY AS a (argument, n)));
        END IF;
    END LOOP;
    FOREACH member IN ARRAY members LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER fence_truncate BEFORE TRUNCATE ON %s
                        FOR EACH STATEMENT EXECUTE FUNCTION fence.refuse_truncate(%L)', member, class);
        PERFORM fence.fire_always(member, 'fence_enforce', 'fence_truncate');
    END LOOP;
    PERFORM fence.register_guarded(guarded, 'mark', class, key_columns, NULL);
END
$$;

CREATE OR REPLACE FUNCTION fence.register_guarded(guarded regclass, guard text, class text, key_columns name[],
                                                  token_column name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    nullable text;
BEGIN
    INSERT INTO fence.guarded AS g (relation, guard, name, class, key_columns, token_column)
    VALUES ($1, $2, $1::text, $3, $4, $5)
    ON CONFLICT ON CONSTRAINT guarded_pkey DO UPDATE
    SET name = excluded.name, class = excluded.class, key_columns = excluded.key_columns, token_column = excluded.token_column
    WHERE (g.name, g.class, g.key_columns, g.token_column)
        IS DISTINCT FROM (excluded.name, excluded.class, excluded.key_columns, excluded.token_column);
    IF FOUND AND guard = 'mark' THEN
        SELECT string_agg(format('ALTER COLUMN %I SET NOT NULL', a.attname), ', ') INTO nullable
        FROM pg_attribute a WHERE a.attrelid = guarded AND a.attname = ANY (key_columns) AND NOT a.attnotnull;
    END IF;
    IF nullable IS NOT NULL THEN
        RAISE NOTICE USING
            MESSAGE = format('a key column of %s may be NULL: such a row is refused', guarded),
            HINT = format('To say so in the table: ALTER TABLE %s %s', guarded, nullable);
    END IF;
END
$$;

-- Takes the mark guard off a table and all that it covered there, but for parts that were protected by themselves. The marks
-- stay. It is written down in fence.danger_log.
CREATE OR REPLACE FUNCTION fence.unprotect(guarded regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM fence.detach(guarded, 'mark', ARRAY['fence_enforce', 'fence_truncate']);
END
$$;

CREATE OR REPLACE FUNCTION fence.detach(guarded regclass, guard text, triggers name[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    members regclass[];
    its_class text := (SELECT t.class FROM fence.guard_trigger t WHERE t.relation = $1 AND t.guard = $2);
    parent regclass;
    kept regclass[];
    one record;
    own record;
BEGIN
    PERFORM fence.lock_class(its_class);
    members := fence.members_of(guarded);
    IF guarded IS NULL THEN
        PERFORM fence.require_tables(guarded, members);
    END IF;
    SELECT i.inhparent INTO parent FROM pg_inherits i JOIN fence.guard_trigger t ON t.relation = i.inhparent
    WHERE i.inhrelid = $1 AND t.guard = $2;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format('%s is guarded as a part of %s', guarded, parent),
            HINT = format('Unprotect the whole: SELECT fence.unprotect(%L).', parent);
    END IF;
    PERFORM fence.lock_tables(members, 'ACCESS EXCLUSIVE');
    its_class := (SELECT t.class FROM fence.guard_trigger t WHERE t.relation = $1 AND t.guard = $2);
    SELECT coalesce(array_agg(k.relation), '{}') INTO kept
    FROM fence.guarded g CROSS JOIN unnest(fence.members_of(g.relation)) AS k (relation)
    WHERE g.relation = ANY (members) AND g.relation <> $1 AND g.guard = $2;
    FOR one IN SELECT t.tgrelid::regclass AS relation, t.tgname FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
                 WHERE t.tgrelid = ANY (members) AND t.tgname = ANY (triggers) AND t.tgparentid = 0
                   AND t.tgrelid <> ALL (kept)
                   AND p.pronamespace = 'fence'::regnamespace LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', one.tgname, one.relation);
    END LOOP;
    IF one IS NULL THEN
        RAISE NOTICE USING MESSAGE = format('%s was not guarded by the %s guard', guarded, guard),
            HINT = 'fence.unprotect takes the mark guard off, fence.unprotect_column the column guard; fence.guarded lists both.';
    ELSE
        PERFORM fence.log_danger('unprotect', its_class, NULL, guard || ' guard of ' || guarded, NULL, 'unprotect was called');
    END IF;
    DELETE FROM fence.guarded g WHERE g.relation = $1 AND g.guard = $2;
    -- A partition's own guard had become its parent's, and went with it.
    FOR own IN SELECT g.* FROM fence.guarded g
               WHERE g.relation = ANY (kept) AND g.guard = $2
                 AND NOT EXISTS (SELECT FROM fence.guard_trigger t WHERE t.relation = g.relation AND t.guard = $2)
               ORDER BY array_position(members, g.relation) LOOP
        IF own.guard = 'mark' THEN
            PERFORM fence.attach(own.relation, own.class, own.key_columns, NULL);
        ELSE
            PERFORM fence.attach_column(own.relation, own.class, own.key_columns[1], own.token_column, NULL);
        END IF;
    END LOOP;
END
$$;

-- A table and what holds rows that are read through it: partitions, and tables that inherit; parents first.
CREATE OR REPLACE FUNCTION fence.members_of(relation regclass) RETURNS regclass[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    WITH RECURSIVE member (relation, depth) AS (
        SELECT $1, 0
        UNION
        SELECT i.inhrelid::regclass, m.depth + 1
        FROM member m JOIN pg_inherits i ON i.inhparent = m.relation JOIN pg_class c ON c.oid = i.inhrelid
        WHERE c.relkind NOT IN ('i', 'I')
    )
    SELECT array_agg(d.relation ORDER BY d.depth, d.relation)
    FROM (SELECT m.relation, max(m.depth) AS depth FROM member m GROUP BY m.relation) d
$$;

-- Whoever changes a class's guards or its mode is alone in it until its transaction ends. It waits 1 s at most, or as long as a
-- stricter lock_timeout of the caller allows; then 55P03. What is to be seen of the class is looked up in a later statement.
CREATE OR REPLACE FUNCTION fence.lock_class(class text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    callers_setting text := current_setting('lock_timeout');
    its_lock bigint := hashtextextended('fence.class.guards' || E'\x1f' || class, 1);
BEGIN
    BEGIN
        PERFORM set_config('lock_timeout', fence.left_of_second(clock_timestamp(), callers_setting), true);
        PERFORM pg_advisory_xact_lock(its_lock);
    EXCEPTION WHEN lock_not_available THEN
        RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
            MESSAGE = format('the guards or the mode of class %s are being changed', class),
            DETAIL = coalesce(
                (SELECT string_agg(DISTINCT fence.describe_holder(l.pid, l.virtualtransaction), '; ')
                 FROM pg_locks l
                 WHERE l.granted AND l.pid IS DISTINCT FROM pg_backend_pid() AND l.locktype = 'advisory' AND l.objsubid = 1
                   AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
                   AND l.classid = ((its_lock >> 32) & 4294967295)::oid AND l.objid = (its_lock & 4294967295)::oid),
                'whoever did so has just ended'),
            HINT = 'Nothing was changed. Try again when that transaction has ended.';
    END;
    PERFORM set_config('lock_timeout', callers_setting, true);
END
$$;

-- Locks tables, waiting 1 s for all together at most, or as long as a stricter lock_timeout of the caller allows; then 55P03,
-- naming who is in the way.
CREATE OR REPLACE FUNCTION fence.lock_tables(relations regclass[], mode text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    callers_setting text := current_setting('lock_timeout');
    began timestamptz := clock_timestamp();
    current regclass;
BEGIN
    BEGIN
        FOREACH current IN ARRAY relations LOOP
            PERFORM set_config('lock_timeout', fence.left_of_second(began, callers_setting), true);
            EXECUTE format('LOCK TABLE ONLY %s IN %s MODE', current, mode);
        END LOOP;
    EXCEPTION WHEN lock_not_available THEN
        RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
            MESSAGE = format('%s is in use', current),
            DETAIL = coalesce(
                (SELECT string_agg(DISTINCT fence.describe_holder(l.pid, l.virtualtransaction), '; ')
                 FROM pg_locks l
                 WHERE l.locktype = 'relation' AND l.relation = current AND l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
                   AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
                   AND ($2 = 'ACCESS EXCLUSIVE' OR l.mode NOT IN ('AccessShareLock', 'RowShareLock'))),
                'whoever used it has just ended'),
            HINT = 'Nothing was changed. Try again when that transaction has ended.';
    END;
    PERFORM set_config('lock_timeout', callers_setting, true);
END
$$;

-- The lock_timeout for a wait that is part of one begun at began, which ends at 900 ms, so that nobody who queues behind it waits
-- for more than 1 s: 1 ms at least, as 0 would mean for ever.
CREATE OR REPLACE FUNCTION fence.left_of_second(began timestamptz, callers_setting text) RETURNS text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT greatest(1, least(900, nullif(extract(epoch FROM $2::interval) * 1000, 0))
                       - extract(epoch FROM clock_timestamp() - $1) * 1000)::integer || 'ms'
$$;

-- Makes triggers fire for a session that applies replicated changes too.
CREATE OR REPLACE FUNCTION fence.fire_always(relation regclass, VARIADIC triggers text[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT t.tgname FROM pg_trigger t
                WHERE t.tgrelid = relation AND t.tgname = ANY (triggers) AND t.tgenabled <> 'A' LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', relation, name);
    END LOOP;
END
$$;

-- Another role's guard function could not be brought up to date by the installer's next upgrade.
CREATE OR REPLACE FUNCTION fence.require_installer() RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    installer name := (SELECT pg_get_userbyid(n.nspowner) FROM pg_namespace n WHERE n.nspname = 'fence');
BEGIN
    IF current_user <> installer THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('role %I does not own schema fence', current_user),
            HINT = format('Tables are guarded by the role that installed this: SET ROLE %I first. A superuser may always do so.',
                          installer);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION fence.require_tables(guarded regclass, members regclass[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    other regclass;
BEGIN
    IF guarded IS NULL OR NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = guarded AND c.relkind IN ('r', 'p')
                                      AND c.relpersistence <> 't') THEN
        RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
            MESSAGE = format('%s is not a table', coalesce(guarded::text, 'NULL')),
            HINT = 'Guard the table that the rows are stored in, not a view of it, and no temporary one.';
    END IF;
    SELECT c.oid INTO other FROM pg_class c WHERE c.oid = ANY (members) AND c.relkind NOT IN ('r', 'p') LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
            MESSAGE = format('%s, a part of %s, is no table of this database', other, guarded),
            HINT = 'The rows of a foreign table can be written past its triggers: take it out, or guard it where it is stored.';
    END IF;
END
$$;

-- A key column is one whose values have one text each: another form of the same value would have another mark.
CREATE OR REPLACE FUNCTION fence.require_key_column(relation regclass, key_column text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    key_type record;
BEGIN
    SELECT a.atttypid, format_type(a.atttypid, a.atttypmod) AS type, coalesce(c.collisdeterministic, true) AS deterministic,
           a.attgenerated = 'v' AS virtual
    INTO key_type
    FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation
    WHERE a.attrelid = relation AND a.attname = key_column AND a.attnum > 0 AND NOT a.attisdropped;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_column',
            MESSAGE = format('%s has no column %I', relation, key_column),
            HINT = (SELECT 'Its columns: ' || string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
                    FROM pg_attribute a WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped);
    END IF;
    IF key_type.atttypid NOT IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype, 'uuid'::regtype, 'text'::regtype,
                              'varchar'::regtype) OR NOT key_type.deterministic THEN
        RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
            MESSAGE = format('key column %I of %s is %s%s', key_column, relation, key_type.type,
                             CASE WHEN key_type.deterministic THEN '' ELSE ' with a nondeterministic collation' END),
            HINT = 'A key column is an integer, a uuid, or text with a deterministic collation.';
    END IF;
    IF key_type.virtual THEN
        RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
            MESSAGE = format('key column %I of %s is generated when it is read', key_column, relation),
            HINT = 'A key column is stored: name the columns that it is generated from, or declare it STORED.';
    END IF;
END
$$;

REVOKE ALL ON FUNCTION fence.arguments_of, fence.key_expression, fence.asking, fence.guard_name, fence.guard_source, fence.guard_function, fence.unadmitted,
    fence.refuse_truncate, fence.protect(regclass, text, VARIADIC name[]),
    fence.protect(regclass, text, name, fence.mode), fence.protect(regclass, text, name[], fence.mode), fence.attach,
    fence.register_guarded, fence.unprotect, fence.detach, fence.members_of, fence.lock_class, fence.lock_tables,
    fence.left_of_second, fence.fire_always, fence.require_installer, fence.require_tables, fence.require_key_column FROM PUBLIC;

INSERT INTO fence.migration (name) VALUES ('0007_protect.sql') ON CONFLICT DO NOTHING;
COMMIT;
