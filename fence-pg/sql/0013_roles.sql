-- Application roles: roles that can use the guard and nothing else of it.
--
--     SELECT fence.grant_application('shop_app');
--     SELECT fence.revoke_application('shop_app');
--
-- A role, or a group of them, is given no more than what a guarded write calls; its rights on the guarded tables are granted
-- as always, and never with ownership. Run it as the role that installed this.
BEGIN;
SET LOCAL client_min_messages = warning;
LOCK TABLE fence.migration IN SHARE ROW EXCLUSIVE MODE;
SET LOCAL lock_timeout = '1s';

-- What an application calls: the mark guard's functions, the column guard's, and those that say why and who is in the way.
CREATE OR REPLACE FUNCTION fence.application_functions() RETURNS SETOF regprocedure
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT p.oid::regprocedure FROM pg_proc p
    WHERE p.pronamespace = 'fence'::regnamespace
      AND p.proname IN ('admit', 'admit_many', 'raise_mark', 'key', 'explain_column', 'explain_block',
                        'describe_backend', 'describe_holder')
$$;

-- The roles that may call the guard as applications, by a right of their own.
CREATE OR REPLACE FUNCTION fence.application_roles() RETURNS SETOF oid
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT DISTINCT a.grantee FROM pg_proc p, aclexplode(p.proacl) a
    WHERE p.pronamespace = 'fence'::regnamespace AND p.proname IN ('admit', 'admit_many', 'raise_mark', 'explain_column')
      AND a.privilege_type = 'EXECUTE' AND a.grantee NOT IN (0, p.proowner)
$$;

-- Lets a role use the guard, and takes from it whatever else in this schema it was given. Again: no change, and the functions
-- that have come since.
CREATE OR REPLACE FUNCTION fence.grant_application(role name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    used regprocedure;
    risk record;
BEGIN
    PERFORM fence.require_application(role);
    PERFORM fence.take_back(role);
    EXECUTE format('GRANT USAGE ON SCHEMA fence TO %I', role);
    FOR used IN SELECT fence.application_functions() LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', used, role);
    END LOOP;
    FOR risk IN SELECT d.detail, d.fix FROM fence.doctor_roles(ARRAY[(SELECT r.oid FROM pg_roles r WHERE r.rolname = role)]) d
                WHERE d.finding IN ('application-superuser', 'application-owner') LOOP
        RAISE WARNING USING MESSAGE = risk.detail, HINT = risk.fix;
    END LOOP;
END
$$;

-- Takes from a role everything that it was given in this schema.
CREATE OR REPLACE FUNCTION fence.revoke_application(role name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM fence.require_application(role);
    PERFORM fence.take_back(role);
END
$$;

CREATE OR REPLACE FUNCTION fence.require_role(role name) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = require_role.role) THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_object',
            MESSAGE = format('there is no role %s', coalesce(quote_ident(role), 'NULL')),
            HINT = format('CREATE ROLE %I LOGIN makes it. A name is taken as it is written, also in case.',
                          coalesce(role, 'shop_app'));
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION fence.require_application(role name) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM fence.require_role(role);
    IF EXISTS (SELECT FROM pg_namespace n JOIN pg_roles r ON r.oid = n.nspowner
               WHERE n.nspname = 'fence' AND r.rolname = require_application.role) THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('role %I owns schema fence, and may do anything with the guard', role),
            HINT = 'Give applications a role of their own: CREATE ROLE shop_app LOGIN.';
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION fence.take_back(role name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA fence FROM %I', role);
    EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA fence FROM %I', role);
    EXECUTE format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA fence FROM %I', role);
    EXECUTE format('REVOKE ALL ON SCHEMA fence FROM %I', role);
END
$$;

REVOKE ALL ON FUNCTION fence.application_functions, fence.application_roles, fence.grant_application,
    fence.revoke_application, fence.require_role, fence.require_application, fence.take_back FROM PUBLIC;

INSERT INTO fence.migration (name) VALUES ('0013_roles.sql') ON CONFLICT DO NOTHING;
COMMIT;
