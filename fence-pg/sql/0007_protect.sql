-- Enforcement of the mark guard: a table on which every write, from any language or from psql, is refused unless its
-- transaction admitted the row's key.
--
--     SELECT fence.protect('transfer', 'paydb.account', 'from_account');
--
-- Run it as the role that installed this, which must own the table. Again, with the same arguments: it covers partitions that
-- have been added, and switches on triggers that are off or less than ALWAYS, as pg_restore --disable-triggers leaves them. A
-- new partition is guarded at once against row writes, but against TRUNCATE of itself only from the next call on.
-- Not covered, as the owner's own doing: DDL, such as DISABLE TRIGGER or DETACH PARTITION.
BEGIN;
SET LOCAL client_min_messages = warning;
LOCK TABLE fence.migration IN SHARE ROW EXCLUSIVE MODE;

-- Arguments: class, key columns. It runs after the row is written: before it, another trigger could still change the key.
CREATE OR REPLACE FUNCTION fence.enforce() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    key_of text;
    old_key text;
    new_key text;
BEGIN
    IF TG_NARGS = 2 THEN
        key_of := format('SELECT ($1).%I::text', TG_ARGV[1]);
    ELSE
        SELECT format('SELECT fence.key(%s)', string_agg(format('($1).%I::text', c.name), ', ' ORDER BY c.n)) INTO key_of
        FROM unnest(TG_ARGV) WITH ORDINALITY AS c (name, n) WHERE c.n > 1;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        EXECUTE key_of INTO old_key USING OLD;
        PERFORM fence.require_admitted(TG_ARGV[0], old_key, TG_RELID);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        EXECUTE key_of INTO new_key USING NEW;
        IF TG_OP = 'INSERT' OR new_key IS DISTINCT FROM old_key THEN
            PERFORM fence.require_admitted(TG_ARGV[0], new_key, TG_RELID);
        END IF;
    END IF;
    RETURN NULL;
END
$$;

-- Raises unless this transaction admitted the key: ZF006 when it admitted another key of the class, ZF002 when none.
CREATE OR REPLACE FUNCTION fence.require_admitted(class text, key text, relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    PERFORM FROM fence.high_water h
    WHERE h.class = require_admitted.class AND h.key = require_admitted.key
      AND h.admitted_xid = pg_current_xact_id() AND h.admitted_at = transaction_timestamp();
    IF FOUND THEN
        RETURN;
    END IF;
    IF require_admitted.class = ANY (string_to_array(current_setting('fence.admitted_classes', true), ' ')) THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF006',
            MESSAGE = format('wrong key: %s of class %s, key %L, was written, and another key was admitted',
                             relation, require_admitted.class, require_admitted.key),
            DETAIL = format('class %s, key %L', require_admitted.class, require_admitted.key)
                || coalesce(format('; first admitted was key %L', fence.first_admitted(require_admitted.class)), ''),
            HINT = 'Admit the key of every row that is written, in its canonical text: an integer as 42, never as 042.';
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'ZF002',
        MESSAGE = format('missing admission: %s of class %s, key %L, was written without one',
                         relation, require_admitted.class, require_admitted.key),
        DETAIL = 'missing fencing token',
        HINT = 'Call fence.admit(class, key, token, grant_id) first, in the same transaction.';
END
$$;

-- The first key of a class that this transaction admitted, for the words of a refusal.
CREATE OR REPLACE FUNCTION fence.first_admitted(class text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT convert_from(decode(split_part(e.entry, ':', 2), 'hex'), 'UTF8')
    FROM unnest(string_to_array(current_setting('fence.admitted_keys', true), ' ')) WITH ORDINALITY AS e (entry, n)
    WHERE split_part(e.entry, ':', 1) = $1 ORDER BY e.n LIMIT 1
$$;

CREATE OR REPLACE FUNCTION fence.refuse_truncate() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'ZF002',
        MESSAGE = format('missing admission: TRUNCATE of %s names no key', TG_RELID::regclass),
        DETAIL = 'missing fencing token',
        HINT = 'DELETE the rows of each key that was admitted.';
END
$$;

-- Guards a table, its partitions and their later ones for a class. Unless the class is declared it is now, without a tier,
-- and a NOTICE says so.
CREATE OR REPLACE FUNCTION fence.protect(guarded regclass, class text, VARIADIC key_columns name[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    arguments text := format('%L', class);
    present bytea;
    wanted bytea := convert_to(class, 'UTF8') || '\x00';
    key_column text;
    part regclass;
BEGIN
    PERFORM fence.require_table(guarded);
    FOREACH key_column IN ARRAY key_columns LOOP
        PERFORM fence.require_key_column(guarded, key_column);
        arguments := arguments || format(', %L', key_column);
        wanted := wanted || convert_to(key_column, 'UTF8') || '\x00';
    END LOOP;
    PERFORM fence.declare_guarded(class);

    SELECT t.tgargs INTO present FROM pg_trigger t
    WHERE t.tgrelid = guarded AND t.tgname = 'fence_enforce' AND t.tgfoid = 'fence.enforce'::regproc;
    IF present IS NULL THEN
        EXECUTE format('CREATE TRIGGER fence_enforce AFTER INSERT OR UPDATE OR DELETE ON %s
                        FOR EACH ROW EXECUTE FUNCTION fence.enforce(%s)', guarded, arguments);
    ELSIF present <> wanted THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_object',
            MESSAGE = format('%s is already guarded, for another class or by other key columns', guarded),
            HINT = format('To change that, first DROP TRIGGER fence_enforce ON %s.', guarded);
    END IF;
    FOR part IN SELECT fence.tree_of(guarded) LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER fence_truncate BEFORE TRUNCATE ON %s
                        FOR EACH STATEMENT EXECUTE FUNCTION fence.refuse_truncate()', part);
        PERFORM fence.fire_always(part, 'fence_enforce', 'fence_truncate');
    END LOOP;
END
$$;

-- A table and its partitions.
CREATE OR REPLACE FUNCTION fence.tree_of(relation regclass) RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT $1 UNION SELECT t.relid FROM pg_partition_tree($1) t
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

CREATE OR REPLACE FUNCTION fence.require_table(relation regclass) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF relation IS NULL OR NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = relation AND c.relkind IN ('r', 'p')) THEN
        RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
            MESSAGE = format('%s is not a table', coalesce(relation::text, 'NULL')),
            HINT = 'Guard the table that the rows are stored in.';
    END IF;
    IF EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
               WHERE i.inhparent = relation AND NOT c.relispartition) THEN
        RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
            MESSAGE = format('%s has tables that inherit from it, which its triggers do not cover', relation),
            HINT = 'Use partitions.';
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
    SELECT a.atttypid, format_type(a.atttypid, a.atttypmod) AS type, coalesce(c.collisdeterministic, true) AS deterministic
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
END
$$;

REVOKE ALL ON FUNCTION fence.enforce, fence.require_admitted, fence.first_admitted, fence.refuse_truncate, fence.protect,
    fence.tree_of, fence.fire_always, fence.require_table, fence.require_key_column FROM PUBLIC;

INSERT INTO fence.migration (name) VALUES ('0007_protect.sql') ON CONFLICT DO NOTHING;
COMMIT;
