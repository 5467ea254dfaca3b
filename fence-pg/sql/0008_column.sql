-- The column guard: the mark is a column of the guarded row, compared in the same UPDATE.
--
--     SELECT fence.protect_column('settlement_batch', 'paydb.settlement', 'id', 'fence_token');
--     SELECT fence.unprotect_column('settlement_batch');
--     UPDATE settlement_batch SET state = 'settled', fence_token = $2 WHERE id = $1 AND fence_token <= $2 RETURNING state;
--     -- no row: stale, or not there?
--     SELECT fence.explain_column('settlement_batch', 'id', 'fence_token', $1::text, $2);
--
-- Its limits: the mark lives and dies with its row; there is no grant id, so no collision is seen; a statement that forgets
-- the token is not refused; the mark cannot be raised ahead, so it is only for writes that depend on no earlier read, or that
-- read by UPDATE .. RETURNING. In a MERGE the token stands in WHEN MATCHED AND, never in ON, where a stale one would insert.
--
-- In a class that only observes, a fall is counted and let through: fence.enforce of the class makes it refused.
--
-- A role that writes under it needs USAGE on this schema and EXECUTE on fence.explain_column and fence.explain_block.
BEGIN;
SET LOCAL client_min_messages = warning;
LOCK TABLE fence.migration IN SHARE ROW EXCLUSIVE MODE;
SET LOCAL lock_timeout = '1s';

-- Arguments: class, key column, token column. It runs only for a row whose token falls.
CREATE OR REPLACE FUNCTION fence.refuse_fall() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    presented bigint;
    seen bigint;
    its_key text;
BEGIN
    EXECUTE format('SELECT ($1).%1$I, ($2).%1$I, ($2).%2$I::text', TG_ARGV[2], TG_ARGV[1]) INTO presented, seen, its_key
    USING NEW, OLD;
    IF fence.lets_through(TG_ARGV[0], TG_RELID, 'token fell', its_key) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'ZF001',
        MESSAGE = format('stale token for class %s: column %I of %s never falls', TG_ARGV[0], TG_ARGV[2], TG_RELID::regclass),
        DETAIL = format('presented %s, seen %s', presented, seen),
        HINT = 'A newer holder has been here. Stop this work; do not fetch a newer token for it.';
END
$$;

-- Keeps the token column of a table, its partitions, and the tables that inherit from it by now from falling. Unless the class
-- is declared it is now, without a tier, and a NOTICE says so. Locks, and what a second call does: as protect.
CREATE OR REPLACE FUNCTION fence.protect_column(guarded regclass, class text, key_column name, token_column name)
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM fence.require_installer();
    PERFORM fence.attach_column($1, $2, $3, $4, NULL);
END
$$;

-- The same, and sets the class's mode.
CREATE OR REPLACE FUNCTION fence.protect_column(guarded regclass, class text, key_column name, token_column name,
                                                mode fence.mode) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM fence.require_installer();
    PERFORM fence.attach_column($1, $2, $3, $4, $5);
END
$$;

CREATE OR REPLACE FUNCTION fence.attach_column(guarded regclass, class text, key_column name, token_column name,
                                               mode fence.mode) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    members regclass[];
    arguments text := format('%L, %L, %L', class, key_column, token_column);
    falls text := format('NEW.%1$I < OLD.%1$I', token_column);
    member regclass;
    present record;
BEGIN
    PERFORM fence.lock_class(class);
    members := fence.members_of(guarded);
    PERFORM fence.require_tables(guarded, members);
    PERFORM fence.require_key_column(guarded, key_column);
    PERFORM fence.require_token_column(guarded, token_column);
    PERFORM fence.declare_guarded(class);
    PERFORM fence.choose_mode(class, mode);
    PERFORM fence.lock_tables(members, 'SHARE ROW EXCLUSIVE');

    -- All of them first: a parent's new trigger takes the place of its partitions' own.
    FOREACH member IN ARRAY members LOOP
        SELECT t.class, t.key_columns, t.token_column INTO present FROM fence.guard_trigger t
        WHERE t.relation = member AND t.guard = 'column';
        IF FOUND AND (present.class, present.key_columns, present.token_column)
                     IS DISTINCT FROM (class, ARRAY[key_column], token_column) THEN
            RAISE EXCEPTION USING ERRCODE = 'duplicate_object',
                MESSAGE = format('%s is already guarded, for another class or by other columns', member),
                DETAIL = format('class %s, by %s and %s', present.class, present.key_columns[1], present.token_column),
                HINT = format('To change that, first SELECT fence.unprotect_column(%L), in one transaction with this.', member);
        END IF;
    END LOOP;
    FOREACH member IN ARRAY members LOOP
        CONTINUE WHEN EXISTS (SELECT FROM fence.guard_trigger t
                              WHERE t.relation = member AND t.guard = 'column' AND t.of_parent);
        EXECUTE format('CREATE OR REPLACE TRIGGER fence_column AFTER UPDATE ON %s
                        FOR EACH ROW WHEN (%s) EXECUTE FUNCTION fence.refuse_fall(%s)', member, falls, arguments);
        -- A row that moves to another partition fires no AFTER UPDATE; its name puts this one behind other BEFORE triggers.
        IF EXISTS (SELECT FROM pg_class c WHERE c.oid = member AND (c.relkind = 'p' OR c.relispartition)) THEN
            EXECUTE format('CREATE OR REPLACE TRIGGER zz_fence_column_move BEFORE UPDATE ON %s
                            FOR EACH ROW WHEN (%s) EXECUTE FUNCTION fence.refuse_fall(%s)', member, falls, arguments);
        END IF;
    END LOOP;
    FOREACH member IN ARRAY members LOOP
        PERFORM fence.fire_always(member, 'fence_column', 'zz_fence_column_move');
    END LOOP;
    PERFORM fence.register_guarded(guarded, 'column', class, ARRAY[key_column], token_column);
    IF NOT EXISTS (
        SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attname = key_column
        WHERE i.indrelid = guarded AND i.indisunique AND i.indpred IS NULL AND i.indisvalid
          AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum
    ) THEN
        RAISE NOTICE USING
            MESSAGE = format('%s may have several rows of one key, as %I alone is not unique: each has a mark of its own',
                             guarded, key_column),
            HINT = 'A new row begins with whatever token it is inserted with. A unique index on the key column keeps it at one row.';
    END IF;
END
$$;

-- Takes the column guard off a table and all that it covered there, but for parts that were protected by themselves. The column
-- stays. It is written down in fence.danger_log.
CREATE OR REPLACE FUNCTION fence.unprotect_column(guarded regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM fence.detach(guarded, 'column', ARRAY['fence_column', 'zz_fence_column_move']);
END
$$;

CREATE OR REPLACE FUNCTION fence.require_token_column(relation regclass, token_column text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    token_type record;
BEGIN
    SELECT a.atttypid, a.attnotnull, format_type(a.atttypid, a.atttypmod) AS type INTO token_type
    FROM pg_attribute a
    WHERE a.attrelid = relation AND a.attname = token_column AND a.attnum > 0 AND NOT a.attisdropped;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_column',
            MESSAGE = format('%s has no column %I', relation, token_column),
            HINT = format('ALTER TABLE %s ADD COLUMN %I bigint NOT NULL DEFAULT 0', relation, token_column);
    END IF;
    IF token_type.atttypid <> 'int8'::regtype THEN
        RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
            MESSAGE = format('token column %I of %s is %s', token_column, relation, token_type.type),
            HINT = 'A token column is bigint: text orders 9674 above 10008, and integer is too small.';
    END IF;
    IF NOT token_type.attnotnull THEN
        RAISE EXCEPTION USING ERRCODE = 'not_null_violation',
            MESSAGE = format('token column %I of %s may be NULL', token_column, relation),
            HINT = format('UPDATE its rows to 0, then ALTER TABLE %s ALTER COLUMN %I SET NOT NULL.', relation, token_column);
    END IF;
END
$$;

-- Why a guarded UPDATE touched no row. It raises ZF001 when a row of the key bears a token above the presented one, and 22004
-- when it bears none. It returns when there is no such row, or none that the calling role may see or may update, when another
-- condition of the UPDATE was not met, or when another row took the place of the one that the UPDATE had waited for: deleting
-- a row drops its mark. No token is ZF002, one below 1 ZF003, no key ZF006. Called in the UPDATE's own transaction; after an
-- UPDATE that did touch the row it returns, too.
CREATE OR REPLACE FUNCTION fence.explain_column(relation regclass, key_column text, token_column text, key text,
                                                presented bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    key_type text;
    has_null boolean;
    seen bigint;
BEGIN
    IF presented IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF002', MESSAGE = 'missing fencing token', DETAIL = 'missing fencing token',
            HINT = 'Present the token that the grant gave.';
    END IF;
    IF presented < 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF003', MESSAGE = format('token %s is below 1', presented),
            DETAIL = format('presented %s', presented), HINT = 'Tokens are 1 to 9223372036854775807.';
    END IF;
    IF key IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF006', MESSAGE = format('no key of a row of %s was given', relation),
            DETAIL = 'key NULL', HINT = 'Present the key of the row that is written.';
    END IF;
    SELECT format_type(a.atttypid, a.atttypmod) INTO key_type FROM pg_attribute a
    WHERE a.attrelid = relation AND a.attname = key_column AND a.attnum > 0 AND NOT a.attisdropped;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_column',
            MESSAGE = format('%s has no column %I', relation, coalesce(key_column, 'NULL')),
            HINT = 'Name the key column that fence.protect_column was called with.';
    END IF;
    EXECUTE format('SELECT bool_or(t.%1$I IS NULL), max(t.%1$I) FROM %2$s t WHERE t.%3$I = $1::%4$s',
                   token_column, relation, key_column, key_type) INTO has_null, seen USING key;
    IF has_null THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
            MESSAGE = format('the token of %s, key %L, is NULL', relation, key),
            HINT = 'A NULL token guards nothing: SELECT fence.protect_column(...) names what to change.';
    END IF;
    IF presented < seen THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF001',
            MESSAGE = format('stale token for %s, key %L', relation, key),
            DETAIL = format('presented %s, seen %s', presented, seen),
            HINT = 'A newer holder has been here. Stop this work; do not fetch a newer token for it.';
    END IF;
END
$$;

-- Who holds the row that a guarded UPDATE waited for, as far as the calling role may see it; NULL when nobody does any more.
CREATE OR REPLACE FUNCTION fence.explain_block(relation regclass, key_column text, key text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    key_type text;
    locker xid;
BEGIN
    SELECT format_type(a.atttypid, a.atttypmod) INTO key_type FROM pg_attribute a
    WHERE a.attrelid = relation AND a.attname = key_column AND a.attnum > 0 AND NOT a.attisdropped;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_column',
            MESSAGE = format('%s has no column %I', relation, coalesce(key_column, 'NULL')),
            HINT = 'Name the key column that fence.protect_column was called with.';
    END IF;
    EXECUTE format('SELECT t.xmax FROM %s t WHERE t.%I = $1::%s', relation, key_column, key_type)
    INTO locker USING key;
    RETURN (SELECT fence.describe_holder(l.pid, l.virtualtransaction)
            FROM pg_locks l
            WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted AND l.transactionid = locker
            LIMIT 1);
END
$$;

REVOKE ALL ON FUNCTION fence.refuse_fall, fence.protect_column(regclass, text, name, name),
    fence.protect_column(regclass, text, name, name, fence.mode), fence.attach_column, fence.unprotect_column, fence.require_token_column, fence.explain_column,
    fence.explain_block FROM PUBLIC;

INSERT INTO fence.migration (name) VALUES ('0008_column.sql') ON CONFLICT DO NOTHING;
COMMIT;
