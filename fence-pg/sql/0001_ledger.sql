-- Schema fence, and the ledger of what is installed in it.
--
-- Needs PostgreSQL 14 or newer, and a role that owns the database; superuser rights are not needed. Apply every file of this
-- folder, in name order, as one role:
--
--     for file in *.sql; do psql -v ON_ERROR_STOP=1 -f "$file" || break; done
--
-- Each file is one transaction and may be applied again. Upgrade: apply the whole folder again, never one older file alone.
-- Remove: DROP SCHEMA fence CASCADE. That takes the triggers on guarded tables along, and every mark.
--
-- PUBLIC may do nothing here. A role that only writes under the mark guard needs:
--
--     GRANT USAGE ON SCHEMA fence TO app;
--     GRANT EXECUTE ON FUNCTION fence.admit, fence.raise_mark TO app;
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
ALTER TABLE fence.migration ADD COLUMN IF NOT EXISTS sha256 text;

-- Two installers at once: the second one waits here.
LOCK TABLE fence.migration IN SHARE ROW EXCLUSIVE MODE;

INSERT INTO fence.migration (name) VALUES ('0001_ledger.sql') ON CONFLICT DO NOTHING;
COMMIT;
