-- Every way around the guard that the database's present state leaves open, and the fix for each.
--
--     SELECT * FROM fence.doctor();
--     SELECT * FROM fence.doctor(ARRAY['shop_app', 'shop_batch']::name[]);
--
-- No row: nothing was found. Without an argument the application's roles are those that may call the guard or write a guarded
-- table by a right of their own, and who is a member of them; name those that connect as something else, such as the owner.
-- Severities: 'open', a write can pass the guard or its mark can be lost; 'weak', the guard holds and something that it relies
-- on does not; 'unknown', not judged, and why. A finding's name stays as it is, so that scripts can look for it.
--
-- It looks, and changes nothing. A database owner sees all that it asks for. A monitoring role needs USAGE on this schema and
-- EXECUTE on fence.doctor.
BEGIN;
SET LOCAL client_min_messages = warning;
LOCK TABLE fence.migration IN SHARE ROW EXCLUSIVE MODE;
SET LOCAL lock_timeout = '1s';

DROP FUNCTION IF EXISTS fence.doctor_words(bytea), fence.guarded_tables(), fence.guarded_relations();

-- Each guarded table: what protect was called for, and what has a guard's trigger all the same.
CREATE OR REPLACE FUNCTION fence.guarded_tables()
RETURNS TABLE (root oid, guard text, class text, key_columns name[], token_column name)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT g.relation::oid, g.guard, g.class, g.key_columns, g.token_column
    FROM fence.guarded g JOIN pg_class c ON c.oid = g.relation
    UNION ALL
    SELECT t.relation::oid, t.guard, t.class, t.key_columns, t.token_column
    FROM fence.guard_trigger t
    WHERE NOT t.of_parent
      AND NOT EXISTS (SELECT FROM fence.guarded g WHERE g.relation = t.relation AND g.guard = t.guard)
      AND NOT EXISTS (SELECT FROM pg_inherits i JOIN fence.guard_trigger p ON p.relation = i.inhparent
                      WHERE i.inhrelid = t.relation AND p.guard = t.guard)
$$;

-- The guarded tables, their partitions and the tables that inherit from them, at every depth.
CREATE OR REPLACE FUNCTION fence.guarded_relations()
RETURNS TABLE (relation oid, root oid, guard text, class text, key_columns name[], token_column name)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT m.relation::oid, g.root, g.guard, g.class, g.key_columns, g.token_column
    FROM fence.guarded_tables() g, unnest(fence.members_of(g.root)) AS m (relation)
$$;

-- Whether a column is unique in a table, or, in a partitioned one, together with columns that it is partitioned by.
CREATE OR REPLACE FUNCTION fence.is_unique(relation oid, key_column name) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT EXISTS (
        SELECT FROM pg_index i
        WHERE i.indrelid = $1 AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
          AND (SELECT bool_and(n.attnum = a.attnum OR n.attnum = ANY (coalesce(p.partattrs::smallint[], '{}')))
                      AND bool_or(n.attnum = a.attnum)
               FROM unnest((i.indkey::smallint[])[0:i.indnkeyatts - 1]) AS n (attnum)
               JOIN pg_attribute a ON a.attrelid = $1 AND a.attname = $2
               LEFT JOIN pg_partitioned_table p ON p.partrelid = $1))
$$;

-- Tables: what should keep their rows, and what goes past it.
CREATE OR REPLACE FUNCTION fence.doctor_tables()
RETURNS TABLE (severity text, finding text, object text, detail text, fix text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    WITH tree AS (
        SELECT g.*, g.relation::regclass::text AS name, c.relkind, g.relation <> g.root AND NOT c.relispartition AS heir,
               c.relispartition OR c.relkind = 'p' AS moves,
               format('SELECT fence.%s(%L, %L, %s)', CASE g.guard WHEN 'mark' THEN 'protect' ELSE 'protect_column' END,
                      g.root::regclass, g.class,
                      (SELECT string_agg(quote_literal(k.name), ', ' ORDER BY k.n)
                       FROM unnest(g.key_columns || g.token_column) WITH ORDINALITY AS k (name, n) WHERE k.name IS NOT NULL))
                   AS again
        FROM fence.guarded_relations() g JOIN pg_class c ON c.oid = g.relation
    ), looked AS (
        SELECT t.*, w.trigger_name, w.what, g.tgenabled,
               g.tgtype <> w.fires OR g.tgattr::text <> '' OR (g.tgqual IS NOT NULL) <> (t.token_column IS NOT NULL)
               OR t.token_column IS NOT NULL
                  AND position(format(' WHEN (new.%1$I < old.%1$I) EXECUTE ', t.token_column) IN pg_get_triggerdef(g.oid, true)) = 0
                   AS altered
        -- As pg_trigger counts: 1 for each row, 2 before, 4 INSERT, 8 DELETE, 16 UPDATE, 32 TRUNCATE.
        FROM tree t JOIN (VALUES
            ('mark', 'fence_enforce', 29, 'a write of its rows'), ('mark', 'fence_truncate', 34, 'TRUNCATE'),
            ('column', 'fence_column', 17, 'an UPDATE that lowers the token'),
            ('column', 'zz_fence_column_move', 19, 'an UPDATE that lowers the token and moves the row to another partition')
        ) AS w (guard, trigger_name, fires, what) USING (guard)
        LEFT JOIN pg_trigger g ON g.tgrelid = t.relation AND g.tgname = w.trigger_name
            AND g.tgfoid IN (SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'fence'::regnamespace)
        -- Only rows of partitions move.
        WHERE t.relkind <> 'f' AND (t.moves OR w.trigger_name <> 'zz_fence_column_move')
    ), unguarded_heir AS (
        SELECT DISTINCT l.relation, l.name, l.root, l.guard, l.again FROM looked l
        WHERE l.heir AND l.trigger_name IN ('fence_enforce', 'fence_column') AND l.tgenabled IS NULL
    )
    SELECT 'open', 'child-unguarded', h.name,
           format('%s inherits from guarded table %s, and has no guard: writes to it are not refused', h.name, h.root::regclass),
           h.again
    FROM unguarded_heir h
    UNION ALL
    SELECT 'open', CASE l.trigger_name WHEN 'fence_truncate' THEN 'truncate-unguarded' ELSE 'trigger-missing' END,
           l.name, format('%s has no trigger %s: %s is not refused', l.name, l.trigger_name, l.what), l.again
    FROM looked l
    WHERE l.tgenabled IS NULL AND NOT EXISTS (SELECT FROM unguarded_heir h WHERE h.relation = l.relation AND h.guard = l.guard)
    UNION ALL
    SELECT 'open', CASE l.tgenabled WHEN 'D' THEN 'trigger-off' ELSE 'trigger-not-always' END, l.name,
           format(CASE l.tgenabled
                  WHEN 'D' THEN 'trigger %2$s of %1$s is off: %3$s is not refused'
                  WHEN 'R' THEN 'trigger %2$s of %1$s fires for replicated changes alone: %3$s is not refused'
                  ELSE 'trigger %2$s of %1$s is not ALWAYS: %3$s is not refused under session_replication_role = replica, '
                       'nor when it is replicated' END, l.name, l.trigger_name, l.what), l.again
    FROM looked l WHERE l.tgenabled <> 'A'
    UNION ALL
    SELECT 'open', 'trigger-altered', l.name,
           format('trigger %s of %s was made by other means than the guard, and does not fire for every row and verb that it '
                  'should: %s may pass', l.trigger_name, l.name, l.what),
           -- A partition's trigger is its parent's; one of its own keeps the guard's from coming back.
           CASE WHEN l.guard = 'mark' THEN '' ELSE format('DROP TRIGGER %I ON %s; ', l.trigger_name, l.name) END || l.again
    FROM looked l WHERE l.altered
    UNION ALL
    SELECT 'open', 'function-altered', p.oid::regprocedure::text,
           format('%s, which asks for the admission of rows of %s, is not as the guard made it', p.oid::regprocedure,
                  string_agg(t.name, ', ' ORDER BY t.name)),
           min(t.again)
    FROM tree t JOIN fence.guard_trigger g ON g.relation = t.relation AND g.guard = 'mark' JOIN pg_proc p ON p.oid = g.function
    WHERE t.guard = 'mark' AND (p.proname, p.prosrc, p.prosecdef, p.provolatile)
          IS DISTINCT FROM (fence.guard_name(t.class, t.key_columns), fence.guard_source(t.class, t.key_columns), true, 's'::"char")
    GROUP BY p.oid
    UNION ALL
    SELECT 'open', 'foreign-member', t.name,
           format('%s, a part of guarded table %s, keeps its rows elsewhere: whoever writes there is not refused', t.name,
                  t.root::regclass),
           format('Detach it, or guard the table that its rows are stored in, in its own database')
    FROM tree t WHERE t.relkind = 'f'
    UNION ALL
    SELECT CASE WHEN n.now IS NULL THEN 'weak' ELSE 'open' END,
           CASE WHEN n.now IS NULL THEN 'table-gone' ELSE 'table-recreated' END, g.name,
           CASE WHEN n.now IS NULL THEN format('%s was guarded for class %s, and is gone', g.name, g.class)
                ELSE format('%s was guarded for class %s; the table of that name is another one now, and not guarded', g.name, g.class)
           END,
           format('DELETE FROM fence.guarded WHERE relation = %s', g.relation::oid)
           || CASE WHEN n.now IS NULL THEN '' ELSE format('; SELECT fence.protect%s(%L, %L, %s)',
                   CASE g.guard WHEN 'mark' THEN '' ELSE '_column' END, g.name, g.class,
                   (SELECT string_agg(quote_literal(k.name), ', ' ORDER BY k.n)
                    FROM unnest(g.key_columns || g.token_column) WITH ORDINALITY AS k (name, n) WHERE k.name IS NOT NULL)) END
    FROM fence.guarded g, to_regclass(g.name) AS n (now)
    WHERE NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = g.relation)
      AND NOT EXISTS (SELECT FROM fence.guarded o WHERE o.relation = n.now AND o.guard = g.guard)
    UNION ALL
    SELECT 'open', 'table-swapped', g.name,
           format('%s was guarded for class %s; that table is %s now, and the one that took its name is not guarded', g.name, g.class,
                  g.relation),
           format('SELECT fence.protect%s(%L, %L, %s); and, if it is no longer a resource, SELECT fence.unprotect%s(%L)',
                  w.kind, g.name, g.class,
                  (SELECT string_agg(quote_literal(k.name), ', ' ORDER BY k.n)
                   FROM unnest(g.key_columns || g.token_column) WITH ORDINALITY AS k (name, n) WHERE k.name IS NOT NULL),
                  w.kind, g.relation)
    FROM fence.guarded g JOIN pg_class c ON c.oid = g.relation, to_regclass(g.name) AS n (now),
         LATERAL (SELECT CASE g.guard WHEN 'mark' THEN '' ELSE '_column' END) AS w (kind)
    WHERE n.now <> g.relation AND NOT EXISTS (SELECT FROM tree t WHERE t.relation = n.now)
      AND EXISTS (SELECT FROM pg_class o WHERE o.oid = n.now AND o.relkind IN ('r', 'p'))
    UNION ALL
    -- What a partition keeps when it is detached is the trigger on TRUNCATE; those for rows go.
    SELECT 'open', 'partition-former', t.tgrelid::regclass::text,
           format('%s has the guard''s trigger on TRUNCATE and none for rows: it was a partition of a guarded table, or its '
                  'trigger was dropped. Writes to it are not refused', t.tgrelid::regclass),
           format('Guard it, SELECT fence.protect(%L, CLASS, KEY COLUMN); or, if it is no longer a resource, '
                  'DROP TRIGGER fence_truncate ON %s', t.tgrelid::regclass, t.tgrelid::regclass)
    FROM pg_trigger t
    WHERE t.tgname = 'fence_truncate' AND t.tgfoid IN (SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'fence'::regnamespace)
      AND NOT EXISTS (SELECT FROM tree r WHERE r.relation = t.tgrelid)
    UNION ALL
    SELECT 'weak', 'rule-on-table', l.name,
           format('rule %s of %s rewrites what is written to it: what the application takes for a guarded write may go '
                  'elsewhere', quote_ident(r.rulename), l.name), format('DROP RULE %I ON %s', r.rulename, l.name)
    FROM (SELECT DISTINCT t.relation, t.name FROM tree t) l JOIN pg_rewrite r ON r.ev_class = l.relation
    WHERE r.rulename <> '_RETURN' AND r.ev_enabled <> 'D'
    UNION ALL
    SELECT 'open', 'token-column', t.name,
           format('token column %s of %s %s', quote_ident(t.token_column), t.name,
                  CASE WHEN a.attname IS NULL THEN 'is gone'
                       WHEN a.atttypid <> 'int8'::regtype THEN 'is ' || format_type(a.atttypid, a.atttypmod) || ', not bigint'
                       ELSE 'may be NULL, and NULL guards nothing' END),
           format('ALTER TABLE %s %s', t.name,
                  CASE WHEN a.attname IS NULL THEN format('ADD COLUMN %I bigint NOT NULL DEFAULT 0', t.token_column)
                       WHEN a.atttypid <> 'int8'::regtype THEN format('ALTER COLUMN %I TYPE bigint', t.token_column)
                       ELSE format('ALTER COLUMN %I SET NOT NULL', t.token_column) END)
    FROM tree t LEFT JOIN pg_attribute a ON a.attrelid = t.relation AND a.attname = t.token_column AND NOT a.attisdropped
    WHERE t.guard = 'column' AND (a.attname IS NULL OR a.atttypid <> 'int8'::regtype OR NOT a.attnotnull)
    UNION ALL
    SELECT 'open', 'key-not-unique', t.name,
           format('key column %I of %s has no unique index: a second row of one key, as a MERGE or a later INSERT makes it, is '
                  'written under any token', t.key_columns[1], t.name),
           format('CREATE UNIQUE INDEX ON %s (%I)', t.name, t.key_columns[1])
    FROM tree t JOIN pg_attribute a ON a.attrelid = t.relation AND a.attname = t.key_columns[1] AND NOT a.attisdropped
    WHERE t.guard = 'column' AND t.relation = t.root AND NOT fence.is_unique(t.relation, t.key_columns[1])
    UNION ALL
    SELECT 'weak', 'key-column', t.name,
           format('key column %s of %s %s', quote_ident(k.name), t.name,
                  CASE WHEN a.attname IS NULL THEN 'is gone or renamed: every write is refused'
                       ELSE format('is %s now: one key may have several texts', format_type(a.atttypid, a.atttypmod)) END),
           format('SELECT fence.unprotect%1$s(%2$L); SELECT fence.protect%1$s(%2$L, %3$L, COLUMN), with a column that is an '
                  'integer, a uuid, or text with a deterministic collation, in one transaction',
                  CASE t.guard WHEN 'mark' THEN '' ELSE '_column' END, t.root::regclass, t.class)
    FROM tree t CROSS JOIN unnest(t.key_columns) AS k (name)
    LEFT JOIN pg_attribute a ON a.attrelid = t.relation AND a.attname = k.name AND NOT a.attisdropped
    LEFT JOIN pg_collation c ON c.oid = a.attcollation
    WHERE a.attname IS NULL OR NOT coalesce(c.collisdeterministic, true)
       OR a.atttypid NOT IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype, 'uuid'::regtype, 'text'::regtype, 'varchar'::regtype)
$$;

-- The guard's functions as they were installed, but for those that protect writes for each class.
CREATE TABLE IF NOT EXISTS fence.installed_function (
    name text PRIMARY KEY,
    digest text NOT NULL
);

-- The triggers on the guard's own tables as they were installed.
CREATE TABLE IF NOT EXISTS fence.installed_trigger (
    relation text NOT NULL,
    trigger_name name NOT NULL,
    definition text NOT NULL,
    PRIMARY KEY (relation, trigger_name)
);

CREATE OR REPLACE FUNCTION fence.function_digests() RETURNS TABLE (name text, digest text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT p.oid::regprocedure::text,
           md5(concat_ws(E'\x1f', p.prosrc, p.proconfig, p.prosecdef, p.provolatile, p.prorettype::regtype))
    FROM pg_proc p WHERE p.pronamespace = 'fence'::regnamespace AND p.proname !~ '^guard_[0-9a-f]{16}$'
$$;

-- Who owns what the guard rests on: whoever is one of them may drop a trigger, a table or the guard itself.
CREATE OR REPLACE FUNCTION fence.guard_owners() RETURNS TABLE (owner oid, owned text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    WITH relation AS (
        SELECT DISTINCT c.oid, c.relowner, c.relnamespace FROM fence.guarded_relations() g JOIN pg_class c ON c.oid = g.relation
    ), owned (owner, owned) AS (
        SELECT r.relowner, 'guarded table ' || r.oid::regclass FROM relation r
        UNION
        SELECT n.nspowner, 'schema ' || quote_ident(n.nspname)
        FROM pg_namespace n WHERE n.nspname = 'fence' OR n.oid IN (SELECT r.relnamespace FROM relation r)
        UNION
        SELECT c.relowner, 'tables of schema fence' FROM pg_class c WHERE c.relnamespace = 'fence'::regnamespace
        UNION
        SELECT p.proowner, 'functions of schema fence' FROM pg_proc p WHERE p.pronamespace = 'fence'::regnamespace
        UNION
        SELECT d.datdba, 'this database' FROM pg_database d WHERE d.datname = current_database()
    )
    -- pg_database_owner is whoever owns the database.
    SELECT CASE WHEN r.rolname = 'pg_database_owner' THEN d.datdba ELSE o.owner END, o.owned
    FROM owned o JOIN pg_roles r ON r.oid = o.owner, pg_database d WHERE d.datname = current_database()
$$;

-- The roles to look at: those named, or those that may call the guard or write a guarded table by a right of their own; and
-- the logins that may act as one of these.
CREATE OR REPLACE FUNCTION fence.roles_in_use(named name[]) RETURNS SETOF oid
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    -- Whoever may only grant a role, as its maker may from 16 on, does not act as it.
    may text := CASE WHEN current_setting('server_version_num')::integer < 160000 THEN 'MEMBER' ELSE 'SET' END;
BEGIN
    RETURN QUERY
        WITH direct AS (
            SELECT r.oid FROM pg_roles r WHERE r.rolname = ANY (named)
            UNION
            SELECT a.oid FROM fence.application_roles() AS a (oid) WHERE named IS NULL
            UNION
            SELECT a.grantee
            FROM (SELECT DISTINCT g.relation FROM fence.guarded_relations() g) g
            JOIN pg_class c ON c.oid = g.relation, aclexplode(c.relacl) a
            WHERE named IS NULL AND a.grantee NOT IN (0, c.relowner)
              AND a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER')
        )
        SELECT d.oid FROM direct d
        UNION
        SELECT r.oid FROM pg_roles r, direct d
        WHERE r.rolcanlogin AND NOT r.rolsuper AND (pg_has_role(r.oid, d.oid, may) OR pg_has_role(r.oid, d.oid, 'USAGE'));
END
$$;

-- What a setting is for a role when it connects to this database; NULL when this session cannot tell.
CREATE OR REPLACE FUNCTION fence.setting_of(role oid, setting text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(
        (SELECT substr(c.entry, length($2) + 2)
         FROM pg_db_role_setting s, unnest(s.setconfig) AS c (entry)
         WHERE s.setrole IN ($1, 0)
           AND s.setdatabase IN (0, (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
           AND starts_with(c.entry, $2 || '=')
         ORDER BY s.setrole <> 0 DESC, s.setdatabase <> 0 DESC LIMIT 1),
        (SELECT p.reset_val FROM pg_settings p
         WHERE p.name = $2 AND p.source NOT IN ('user', 'database user', 'client', 'session')))
$$;

-- Whether a role owns a relation, itself or as a member.
CREATE OR REPLACE FUNCTION fence.owns(role oid, relation oid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT pg_has_role($1, c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = $2
$$;

-- Whether a role has a right on a relation that is not its owner's.
CREATE OR REPLACE FUNCTION fence.granted(role oid, relation oid, privilege text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT has_table_privilege($1, $2, $3) AND NOT fence.owns($1, $2)
$$;

-- Whether a role was given the right to set a superuser's parameter, which exists from PostgreSQL 15 on.
CREATE OR REPLACE FUNCTION fence.may_set(role oid, parameter text) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    may boolean := false;
BEGIN
    IF current_setting('server_version_num')::integer >= 150000 THEN
        EXECUTE 'SELECT has_parameter_privilege($1, $2, ''SET'')' INTO may USING role, parameter;
    END IF;
    RETURN may;
END
$$;

-- Application roles, and what they may do besides writing under the guard.
CREATE OR REPLACE FUNCTION fence.doctor_roles(roles oid[])
RETURNS TABLE (severity text, finding text, object text, detail text, fix text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    WITH used AS (
        SELECT r.*, quote_ident(r.rolname) AS name FROM pg_roles r WHERE r.oid = ANY (roles)
    ), relation AS (
        SELECT DISTINCT g.relation, g.guard, g.token_column, g.relation::regclass::text AS name FROM fence.guarded_relations() g
    ), own_role AS (
        SELECT 'Let the application connect as a role of its own that owns nothing: CREATE ROLE shop_app LOGIN; '
               'SELECT fence.grant_application(''shop_app'')'::text AS fix
    )
    SELECT 'open', 'application-superuser', u.name, format('application role %s is a superuser: nothing stops it', u.name), o.fix
    FROM used u, own_role o WHERE u.rolsuper
    UNION ALL
    SELECT 'open', 'application-owner', u.name,
           format('application role %s %s %s: it may drop or switch off a trigger, or the guard itself', u.name,
                  CASE WHEN w.oid = u.oid THEN 'owns' ELSE format('is a member of %I, which owns', w.rolname) END,
                  string_agg(DISTINCT g.owned, ', ' ORDER BY g.owned)),
           CASE WHEN w.oid = u.oid THEN o.fix
                ELSE format('REVOKE %I FROM %I', w.rolname, u.rolname) END
    FROM used u JOIN fence.guard_owners() g ON pg_has_role(u.oid, g.owner, 'MEMBER') JOIN pg_roles w ON w.oid = g.owner, own_role o
    WHERE NOT u.rolsuper
    GROUP BY u.name, u.oid, u.rolname, w.oid, w.rolname, o.fix
    UNION ALL
    SELECT 'open', 'application-escalates', u.name,
           format('application role %s may become %s', u.name, w.what), w.fix
    FROM used u, LATERAL (
        SELECT 'any role that is no superuser, by CREATEROLE' AS what, format('ALTER ROLE %I NOCREATEROLE', u.rolname) AS fix
        WHERE u.rolcreaterole AND current_setting('server_version_num')::integer < 160000
        UNION ALL
        SELECT format('the server''s own account, as a member of %s', p.rolname), format('REVOKE %I FROM %I', p.rolname, u.rolname)
        FROM pg_roles p
        WHERE p.rolname IN ('pg_execute_server_program', 'pg_write_server_files') AND pg_has_role(u.oid, p.oid, 'MEMBER')
        UNION ALL
        SELECT format('superuser %I, as its member', s.rolname), format('REVOKE %I FROM %I', s.rolname, u.rolname)
        FROM pg_roles s WHERE s.rolsuper AND pg_has_role(u.oid, s.oid, 'MEMBER')
    ) w
    WHERE NOT u.rolsuper
    UNION ALL
    SELECT 'weak', 'application-bypassrls', u.name,
           format('application role %s is not held by the row security of %s', u.name, string_agg(r.name, ', ' ORDER BY r.name)),
           format('ALTER ROLE %I NOBYPASSRLS', u.rolname)
    FROM used u, (SELECT DISTINCT r.relation, r.name FROM relation r) r JOIN pg_class c ON c.oid = r.relation
    WHERE u.rolbypassrls AND NOT u.rolsuper AND c.relrowsecurity
    GROUP BY u.name, u.rolname
    UNION ALL
    SELECT 'weak', 'replica-role', u.name,
           format('application role %s %s: foreign keys and other triggers are off then; the guard''s own fire all the same',
                  u.name, CASE WHEN m.set_so THEN 'has session_replication_role = replica'
                               ELSE 'may set session_replication_role' END),
           CASE WHEN m.set_so
                THEN format('ALTER ROLE %I RESET session_replication_role; ALTER DATABASE %I RESET session_replication_role',
                            u.rolname, current_database())
                ELSE format('REVOKE SET ON PARAMETER session_replication_role FROM %I', u.rolname) END
    FROM used u, LATERAL (
        SELECT fence.setting_of(u.oid, 'session_replication_role') IS NOT DISTINCT FROM 'replica' AS set_so,
               fence.may_set(u.oid, 'session_replication_role') AS may
    ) m
    WHERE NOT u.rolsuper AND (m.set_so OR m.may)
    UNION ALL
    SELECT CASE WHEN t.guard = 'column' THEN 'open' ELSE 'weak' END, 'truncate-granted', t.name,
           format('application role %s may TRUNCATE %s: %s', u.name, t.name,
                  CASE WHEN t.guard = 'column' THEN 'with the rows go their marks, and an old token is accepted again'
                       ELSE 'the guard''s trigger alone stands in the way' END),
           format('REVOKE TRUNCATE ON %s FROM %I', t.name, u.rolname)
    FROM used u, relation t WHERE NOT u.rolsuper AND fence.granted(u.oid, t.relation, 'TRUNCATE')
    UNION ALL
    SELECT 'weak', 'trigger-granted', t.name,
           format('application role %s may put triggers of its own on %s, which run among the guard''s', u.name, t.name),
           format('REVOKE TRIGGER ON %s FROM %I', t.name, u.rolname)
    FROM used u, (SELECT DISTINCT r.relation, r.name FROM relation r) t
    WHERE NOT u.rolsuper AND fence.granted(u.oid, t.relation, 'TRIGGER')
    UNION ALL
    SELECT 'open', 'token-column-readable', t.name,
           format('application role %s may read token column %I of %s, so that it can present what stands there instead of its own '
                  'token', u.name, t.token_column, t.name),
           format('REVOKE SELECT, UPDATE ON %s FROM %I, and let it write through a SECURITY DEFINER function that compares the '
                  'token: docs/postgresql.md shows one', t.name, u.rolname)
    FROM used u, relation t JOIN pg_attribute a ON a.attrelid = t.relation AND a.attname = t.token_column AND NOT a.attisdropped
    WHERE NOT u.rolsuper AND t.guard = 'column' AND NOT fence.owns(u.oid, t.relation)
      AND (has_table_privilege(u.oid, t.relation, 'SELECT') OR has_column_privilege(u.oid, t.relation, a.attnum, 'SELECT'))
    UNION ALL
    SELECT CASE WHEN e.reads THEN 'weak' ELSE 'open' END, CASE WHEN e.reads THEN 'mark-readable' ELSE 'guard-writable' END,
           e.relation::regclass::text,
           format(CASE WHEN e.reads THEN 'application role %s may read %s, so that it can present what stands there instead of its '
                                         'own token'
                       ELSE 'application role %s may itself write %s' END, u.name, e.relation::regclass)
           || CASE WHEN e.grantee = u.oid THEN '' ELSE ', as a member of ' || e.grantee::regrole END,
           CASE WHEN e.predefined THEN format('REVOKE %s FROM %I', e.grantee::regrole, u.rolname)
                ELSE format('REVOKE ALL ON %s FROM %s', e.relation::regclass, e.grantee::regrole) END
    FROM used u, (
        SELECT DISTINCT g.relation, g.grantee, g.predefined, g.privilege = 'SELECT' AS reads
        FROM (
            SELECT c.oid AS relation, a.grantee, false AS predefined, a.privilege_type AS privilege
            FROM pg_class c, aclexplode(c.relacl) a WHERE c.relnamespace = 'fence'::regnamespace AND a.grantee <> c.relowner
            UNION ALL
            SELECT c.oid, a.grantee, false, a.privilege_type
            FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid, aclexplode(t.attacl) a
            WHERE c.relnamespace = 'fence'::regnamespace AND a.grantee <> c.relowner
            UNION ALL
            SELECT c.oid, r.oid, true, CASE r.rolname WHEN 'pg_read_all_data' THEN 'SELECT' ELSE 'UPDATE' END
            FROM pg_class c, pg_roles r
            WHERE c.oid = 'fence.high_water'::regclass AND r.rolname IN ('pg_read_all_data', 'pg_write_all_data')
        ) g
        WHERE g.privilege <> 'REFERENCES' AND (g.privilege <> 'SELECT' OR g.relation = 'fence.high_water'::regclass)
    ) e
    WHERE NOT u.rolsuper AND e.grantee <> 0 AND pg_has_role(u.oid, e.grantee, 'USAGE')
    UNION ALL
    SELECT 'open', 'function-granted', p.oid::regprocedure::text,
           format('application role %s may call %s, which is for operators', u.name, p.oid::regprocedure)
           || CASE WHEN a.grantee = u.oid THEN '' ELSE ', as a member of ' || a.grantee::regrole END,
           format('REVOKE EXECUTE ON FUNCTION %s FROM %s', p.oid::regprocedure, a.grantee::regrole)
    FROM used u, pg_proc p, aclexplode(p.proacl) a
    WHERE NOT u.rolsuper AND p.pronamespace = 'fence'::regnamespace AND a.privilege_type = 'EXECUTE'
      AND a.grantee NOT IN (0, p.proowner) AND pg_has_role(u.oid, a.grantee, 'USAGE')
      AND p.oid NOT IN (SELECT f.f FROM fence.application_functions() AS f (f))
    UNION ALL
    SELECT 'weak', 'guard-not-granted', u.name,
           format('application role %s may write %s, and may not call fence.admit: every write of its is refused', u.name,
                  string_agg(r.name, ', ' ORDER BY r.name)),
           format('SELECT fence.grant_application(%L); or, if it should only read, REVOKE INSERT, UPDATE, DELETE ON %s FROM %I',
                  u.rolname, string_agg(r.name, ', ' ORDER BY r.name), u.rolname)
    FROM used u JOIN relation r ON r.guard = 'mark'
    WHERE NOT u.rolsuper AND NOT fence.owns(u.oid, r.relation) AND u.rolcanlogin
      AND NOT (has_schema_privilege(u.oid, 'fence', 'USAGE')
               AND has_function_privilege(u.oid, 'fence.admit(text, text, bigint, text)', 'EXECUTE'))
      AND has_table_privilege(u.oid, r.relation, 'INSERT, UPDATE, DELETE')
    GROUP BY u.name, u.rolname
    UNION ALL
    -- The mark guard sets its bounds itself; nobody does for the column guard's writers.
    SELECT s.severity, s.finding, u.name, format(s.detail, u.name), format(s.fix, u.rolname)
    FROM used u, LATERAL (
        SELECT CASE WHEN v.value IS NULL THEN 'unknown' ELSE 'weak' END AS severity, 'column-idle-unbounded' AS finding,
               CASE WHEN v.value IS NULL THEN 'not judged: this session sets idle_in_transaction_session_timeout itself, so that '
                    'what it is for %s cannot be told' ELSE 'application role %s, under the column guard, may stand idle in a '
                    'transaction for ever and so keep a row' END AS detail,
               'ALTER ROLE %I SET idle_in_transaction_session_timeout = ''5s''' AS fix
        FROM fence.setting_of(u.oid, 'idle_in_transaction_session_timeout') AS v (value)
        WHERE v.value IS NULL OR v.value ~ E'^\\s*0+(\\.0*)?\\s*[a-z]*\\s*$'
        UNION ALL
        SELECT CASE WHEN w.lock IS NULL OR w.statement IS NULL THEN 'unknown' ELSE 'weak' END, 'column-wait-unbounded',
               CASE WHEN w.lock IS NULL OR w.statement IS NULL THEN 'not judged: this session sets lock_timeout or '
                    'statement_timeout itself, so that what they are for %s cannot be told' ELSE 'application role %s, under the '
                    'column guard, waits for ever for a row that another one keeps: lock_timeout and statement_timeout are 0' END,
               'ALTER ROLE %I SET lock_timeout = ''2s'''
        FROM (SELECT fence.setting_of(u.oid, 'lock_timeout'), fence.setting_of(u.oid, 'statement_timeout')) AS w (lock, statement)
        WHERE coalesce(w.lock, '0') ~ E'^\\s*0+(\\.0*)?\\s*[a-z]*\\s*$'
          AND coalesce(w.statement, '0') ~ E'^\\s*0+(\\.0*)?\\s*[a-z]*\\s*$'
        UNION ALL
        SELECT 'weak', 'commit-not-durable',
               'application role %s, under the column guard, commits without waiting for the disk: a crash may take back an '
               'acknowledged write with its mark', 'ALTER ROLE %I SET synchronous_commit = ''on'''
        FROM fence.setting_of(u.oid, 'synchronous_commit') AS v (value) WHERE v.value IN ('off', 'false', 'no', '0')
    ) s
    WHERE u.rolcanlogin AND EXISTS (
        SELECT FROM relation t WHERE t.guard = 'column'
          AND (has_table_privilege(u.oid, t.relation, 'UPDATE') OR has_any_column_privilege(u.oid, t.relation, 'UPDATE')))
$$;

-- The guard's own objects, and what PUBLIC may do.
CREATE OR REPLACE FUNCTION fence.doctor_guard()
RETURNS TABLE (severity text, finding text, object text, detail text, fix text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT 'open', 'function-public', p.oid::regprocedure::text,
           format('anybody may call %s', p.oid::regprocedure),
           format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', p.oid::regprocedure)
    FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
    WHERE p.pronamespace = 'fence'::regnamespace AND a.grantee = 0
      -- These two show no more than pg_stat_activity shows everybody.
      AND p.proname NOT IN ('describe_backend', 'describe_holder')
    UNION ALL
    SELECT 'open', 'guard-writable', c.oid::regclass::text,
           format('anybody may %s %s', string_agg(a.privilege_type, ', ' ORDER BY a.privilege_type), c.oid::regclass),
           format('REVOKE ALL ON %s FROM PUBLIC', c.oid::regclass)
    FROM pg_class c, aclexplode(c.relacl) a WHERE c.relnamespace = 'fence'::regnamespace AND a.grantee = 0
    GROUP BY c.oid
    UNION ALL
    SELECT 'open', 'schema-writable', 'fence',
           format('%s may create objects in schema fence',
                  CASE a.grantee WHEN 0 THEN 'anybody' ELSE 'role ' || a.grantee::regrole END),
           format('REVOKE CREATE ON SCHEMA fence FROM %s', CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END)
    FROM pg_namespace n, aclexplode(n.nspacl) a
    WHERE n.nspname = 'fence' AND a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner
    UNION ALL
    SELECT 'open', 'table-public', c.oid::regclass::text,
           format('anybody may %s %s', string_agg(DISTINCT a.privilege_type, ', ' ORDER BY a.privilege_type), c.oid::regclass),
           format('REVOKE TRUNCATE, TRIGGER ON %s FROM PUBLIC', c.oid::regclass)
    FROM (SELECT DISTINCT g.relation FROM fence.guarded_relations() g) g JOIN pg_class c ON c.oid = g.relation, aclexplode(c.relacl) a
    WHERE a.grantee = 0 AND a.privilege_type IN ('TRUNCATE', 'TRIGGER')
    GROUP BY c.oid
    UNION ALL
    SELECT 'open', 'function-search-path', p.oid::regprocedure::text,
           format('%s runs with its owner''s rights, and its search_path is not pinned: a caller''s objects can stand in for the '
                  'system''s', p.oid::regprocedure),
           format('ALTER FUNCTION %s SET search_path = pg_catalog, pg_temp', p.oid::regprocedure)
    FROM pg_proc p
    WHERE p.pronamespace = 'fence'::regnamespace AND p.prosecdef
      AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (p.proconfig), false)
    UNION ALL
    SELECT 'open', 'function-altered', i.name,
           format('%s %s', i.name, CASE WHEN d.name IS NULL THEN 'is gone' ELSE 'is not as it was installed' END),
           'Apply every file of the guard''s sql folder again, in name order.'
    FROM fence.installed_function i LEFT JOIN fence.function_digests() d USING (name)
    WHERE i.digest IS DISTINCT FROM d.digest
    UNION ALL
    SELECT 'open', 'guard-trigger', i.relation,
           format('trigger %s of %s %s: what it keeps may fall or be removed', i.trigger_name, i.relation,
                  CASE WHEN t.oid IS NULL THEN 'is missing' WHEN t.tgenabled = 'D' THEN 'is off'
                       WHEN t.tgenabled <> 'A' THEN 'is not ALWAYS' ELSE 'is not as it was installed' END),
           'Apply every file of the guard''s sql folder again, in name order.'
    FROM fence.installed_trigger i
    LEFT JOIN pg_trigger t ON t.tgrelid = to_regclass(i.relation) AND t.tgname = i.trigger_name
    WHERE t.tgenabled IS DISTINCT FROM 'A' OR pg_get_triggerdef(t.oid) <> i.definition
$$;

-- Classes.
CREATE OR REPLACE FUNCTION fence.doctor_classes()
RETURNS TABLE (severity text, finding text, object text, detail text, fix text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT 'open', 'class-unguarded', c.name,
           format('no table is protected for class %s%s: a write that forgets its admission is not refused', c.name,
                  CASE WHEN EXISTS (SELECT FROM fence.high_water h WHERE h.class = c.name) THEN ', which has marks' ELSE '' END),
           format('SELECT fence.protect(TABLE, %L, KEY COLUMN)', c.name)
    FROM fence.class c
    WHERE NOT EXISTS (SELECT FROM fence.guarded_tables() g WHERE g.class = c.name)
      AND NOT EXISTS (SELECT FROM fence.guarded g WHERE g.class = c.name)
    UNION ALL
    SELECT 'open', 'class-' || c.mode, c.name,
           CASE c.mode WHEN 'observe'
                THEN format('class %s observes: a write without admission is let through; %s in the last day', c.name,
                            CASE o.n WHEN 0 THEN 'there was none' WHEN 1 THEN '1 transaction did so'
                                     ELSE o.n || ' transactions did so' END)
                ELSE format('class %s stands by: what logical replication writes is let through', c.name) END,
           CASE WHEN o.n = 0 THEN '' ELSE 'SELECT * FROM fence.observed shows who; then ' END
           || format('SELECT fence.enforce(%L)', c.name)
    FROM fence.class c, LATERAL (
        SELECT coalesce(sum(v.transactions), 0) AS n FROM fence.observed v
        WHERE v.class = c.name AND v.last_at > clock_timestamp() - interval '1 day'
    ) o
    WHERE c.mode <> 'enforce'
    UNION ALL
    SELECT 'weak', CASE d.what WHEN 'danger_bypass' THEN 'bypass-used' ELSE 'mark-lowered' END, d.class,
           format('%s: role %s, %s, at %s: %s', d.what, d.role, coalesce(d.application_name, 'without a name'),
                  date_trunc('second', d.at), d.reason),
           'Nothing to mend: fence.danger_log keeps it, and it is named for a day.'
    FROM fence.danger_log d
    WHERE d.what IN ('danger_bypass', 'danger_lower') AND d.at > clock_timestamp() - interval '1 day'
    UNION ALL
    SELECT 'weak', 'tier-without-epoch', c.name,
           format('tier %s of class %s has no registered epoch: every token is refused', c.tier, c.name),
           format('SELECT fence.register_epoch(%L, 1), with the epoch of the tier''s lock store', c.tier)
    FROM fence.class c
    WHERE c.tier IS NOT NULL AND NOT EXISTS (SELECT FROM fence.epoch_range r WHERE r.tier = c.tier)
$$;

-- What the database remembers of itself, and whether anybody else does.
CREATE OR REPLACE FUNCTION fence.doctor_history()
RETURNS TABLE (severity text, finding text, object text, detail text, fix text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT 'open', 'history-in-doubt', 'history', format('every admission is refused (ZF008): %s', h.reason),
           'Register an epoch above every one that was ever granted from, SELECT fence.register_epoch(TIER, EPOCH), then SELECT '
           'fence.acknowledge(''REASON''); after a planned switchover that lost nothing, SELECT fence.acknowledge(''REASON'', '
           'nothing_lost => true)'
    FROM fence.history_status() h WHERE h.state <> 'known'
    UNION ALL
    SELECT 'weak', 'no-outside-memory', 'history',
           CASE WHEN h.outside_memory_at IS NULL THEN 'no memory of this database was ever taken'
                ELSE format('the last memory of this database was taken at %s', date_trunc('second', h.outside_memory_at)) END
           || ': a volume or directory that is put back as it was goes unnoticed, and with it the newest marks',
           'Keep what SELECT fence.remember() returns on another machine, every day: fence doctor --memory FILE does so'
    FROM fence.history_status() h
    WHERE h.outside_memory_at IS NULL OR h.outside_memory_at < clock_timestamp() - interval '7 days'
$$;

-- The server.
CREATE OR REPLACE FUNCTION fence.doctor_server()
RETURNS TABLE (severity text, finding text, object text, detail text, fix text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT 'weak', 'prepared-transactions', 'max_prepared_transactions',
           format('transactions can be prepared, and a prepared one keeps its keys past every timeout and restart; there %s now',
                  CASE n.n WHEN 0 THEN 'are none' WHEN 1 THEN 'is 1' ELSE 'are ' || n.n END),
           'ALTER SYSTEM SET max_prepared_transactions = 0, and a restart'
    FROM (SELECT count(*) AS n FROM pg_prepared_xacts x WHERE x.database = current_database()) n
    WHERE current_setting('max_prepared_transactions')::integer > 0
    UNION ALL
    SELECT 'open', 'server-not-durable', s.name,
           format('%s is off: a crash may take back acknowledged writes and their marks, or leave them torn', s.name),
           format('ALTER SYSTEM SET %s = on, and SELECT pg_reload_conf()', s.name)
    FROM pg_settings s WHERE s.name IN ('fsync', 'full_page_writes') AND s.setting = 'off'
    UNION ALL
    SELECT 'weak', 'few-locks', 'max_locks_per_transaction',
           format('max_locks_per_transaction is %s: each admitted key is a lock', s.setting),
           'ALTER SYSTEM SET max_locks_per_transaction = 64, or more, and a restart'
    FROM pg_settings s WHERE s.name = 'max_locks_per_transaction' AND s.setting::integer < 64
    UNION ALL
    SELECT 'weak', 'subscription', r.srrelid::regclass::text,
           format('subscription %s writes to guarded table %s, without admission: where its class enforces, replication '
                  'stands still at the first such change', s.subname, r.srrelid::regclass),
           'Let the class stand by until this database is promoted, or take the table out of the publication.'
    FROM pg_subscription s JOIN pg_subscription_rel r ON r.srsubid = s.oid
    WHERE s.subdbid = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
      AND r.srrelid IN (SELECT g.relation FROM fence.guarded_relations() g)
$$;

CREATE OR REPLACE FUNCTION fence.doctor(application_roles name[] DEFAULT NULL)
RETURNS TABLE (severity text, finding text, object text, detail text, fix text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    named name;
    roles oid[];
BEGIN
    FOREACH named IN ARRAY coalesce(application_roles, '{}') LOOP
        PERFORM fence.require_role(named);
    END LOOP;
    roles := ARRAY(SELECT fence.roles_in_use(application_roles));
    RETURN QUERY
        SELECT f.severity, f.finding, f.object, f.detail, f.fix
        FROM (
            SELECT * FROM fence.doctor_tables()
            UNION SELECT * FROM fence.doctor_roles(roles)
            UNION SELECT * FROM fence.doctor_guard()
            UNION SELECT * FROM fence.doctor_classes()
            UNION SELECT * FROM fence.doctor_history()
            UNION SELECT * FROM fence.doctor_server()
            UNION
            SELECT 'open', 'no-application-role', 'fence',
                   'no role but the owner may call the guard: whoever writes connects as the owner or a superuser, who may drop a '
                   'trigger',
                   'CREATE ROLE shop_app LOGIN; SELECT fence.grant_application(''shop_app''); and the rights on your tables that '
                   'it needs'
            WHERE roles = '{}'
        ) f
        ORDER BY array_position(ARRAY['open', 'weak', 'unknown'], f.severity), f.finding, f.object, f.detail;
END
$$;

REVOKE ALL ON FUNCTION fence.function_digests, fence.guarded_tables, fence.guarded_relations, fence.is_unique, fence.doctor_tables,
    fence.guard_owners, fence.roles_in_use, fence.setting_of, fence.doctor_roles, fence.owns, fence.granted, fence.may_set,
    fence.doctor_guard, fence.doctor_classes, fence.doctor_history, fence.doctor_server, fence.doctor FROM PUBLIC;

-- The last of the files: what is there now is what was installed.
DELETE FROM fence.installed_function;
INSERT INTO fence.installed_function (name, digest) SELECT d.name, d.digest FROM fence.function_digests() d;
DELETE FROM fence.installed_trigger;
INSERT INTO fence.installed_trigger (relation, trigger_name, definition)
SELECT format('fence.%I', c.relname), t.tgname, pg_get_triggerdef(t.oid)
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = 'fence'::regnamespace AND NOT t.tgisinternal;

INSERT INTO fence.migration (name) VALUES ('0015_doctor.sql') ON CONFLICT DO NOTHING;
COMMIT;
