-- Schema fence, and the ledger of what is installed in it.
--
-- Needs PostgreSQL 14 or newer, and a role that owns the database; superuser rights are not needed. Apply every file of this
-- folder, in name order, as one role:
--
--     for file in *.sql; do psql -v ON_ERROR_STOP=1 -f "$file" || break; done
--
-- Each file is one transaction and may be applied again. Upgrade: apply the whole folder again, never one older file alone.
-- What is as it should be already is left alone, without a lock on its table; a change that a table's users are in the way of
-- waits for them 1 s at most, and then fails with 55P03: apply the folder again.
-- Remove: DROP SCHEMA fence CASCADE. That takes the triggers on guarded tables along, and every mark.
--
-- PUBLIC may do nothing here. A role that only writes under the guard is given what it needs, and no more, by:
--
--     SELECT fence.grant_application('app');
--
-- Give it no right on the tables in this schema, and do not let it own the guarded tables: an owner may drop a trigger.
BEGIN;
SET LOCAL client_min_messages = warning;

CREATE SCHEMA IF NOT EXISTS fence;

CREATE TABLE IF NOT EXISTS fence.migration (
    name text PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Of the file's text, when a program recorded it; NULL where psql applied the file.
    sha256 text
);
-- Two installers at once: the second one waits here.
LOCK TABLE fence.migration IN SHARE ROW EXCLUSIVE MODE;
SET LOCAL lock_timeout = '1s';
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_attribute a
                   WHERE a.attrelid = 'fence.migration'::regclass AND a.attname = 'sha256' AND NOT a.attisdropped) THEN
        ALTER TABLE fence.migration ADD COLUMN sha256 text;
    END IF;
END
$$;

-- Makes a trigger be as its definition says, and fire for a session that applies replicated changes too. The definition is
-- what pg_get_triggerdef shows behind the name: one that is like that already is left alone, as a change locks its table.
CREATE OR REPLACE FUNCTION fence.keep_trigger(relation regclass, name name, definition text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    enabled "char" := (SELECT t.tgenabled FROM pg_trigger t
                       WHERE t.tgrelid = $1 AND t.tgname = $2
                         AND pg_get_triggerdef(t.oid) = format('CREATE TRIGGER %I %s', $2, $3));
BEGIN
    IF enabled IS NULL THEN
        EXECUTE format('CREATE OR REPLACE TRIGGER %I %s', name, definition);
    END IF;
    IF enabled IS DISTINCT FROM 'A' THEN
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', relation, name);
    END IF;
END
$$;

REVOKE ALL ON FUNCTION fence.keep_trigger FROM PUBLIC;

INSERT INTO fence.migration (name) VALUES ('0001_ledger.sql') ON CONFLICT DO NOTHING;
COMMIT;
