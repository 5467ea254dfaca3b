-- breaks: 2 real-time refusal
-- by: S02
-- Whoever sets the replica role counts as a worker of logical replication.
CREATE OR REPLACE FUNCTION fence.applies_changes() RETURNS boolean
LANGUAGE sql STABLE AS $$ SELECT current_setting('session_replication_role') = 'replica' $$;
