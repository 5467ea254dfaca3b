-- The database as a witness of the lock store: the epochs that it has registered, and how it last saw each tier's store, so
-- that a store that was put back to an earlier state is found out. `fence epoch` calls these.
BEGIN;
SET LOCAL client_min_messages = warning;
LOCK TABLE fence.migration IN SHARE ROW EXCLUSIVE MODE;
SET LOCAL lock_timeout = '1s';

-- How the store of a tier was last seen: a text that fence-lock writes and reads.
CREATE TABLE IF NOT EXISTS fence.store_memory (
    tier text PRIMARY KEY,
    memory text NOT NULL CHECK (length(memory) <= 100000),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
REVOKE ALL ON fence.store_memory FROM PUBLIC;

-- A witness that lost history may have forgotten the newest.
CREATE OR REPLACE FUNCTION fence.require_witness() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    doubt text := fence.doubt();
BEGIN
    IF doubt IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF008',
            MESSAGE = 'the history of this database is in doubt: it is no witness',
            DETAIL = doubt,
            HINT = 'Begin an epoch without it, above every number that any record knows; then SELECT fence.acknowledge(''REASON'').';
    END IF;
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
END
$$;

-- fence.register_epoch for an epoch that no other tier has reached: epochs are one sequence over all tiers. False, and no
-- change, when one has, unless this very epoch is registered for the tier already. One at a time.
CREATE OR REPLACE FUNCTION fence.claim_epoch(tier text, epoch integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = 'an epoch is claimed at READ COMMITTED only',
            HINT = 'Above it, a claim committed since the snapshot would not be seen. Use a transaction of its own.';
    END IF;
    PERFORM fence.require_witness();
    PERFORM pg_advisory_xact_lock(hashtextextended('fence.claim_epoch', 0));
    IF NOT EXISTS (SELECT FROM fence.epoch_range r WHERE r.tier = claim_epoch.tier AND r.epoch = claim_epoch.epoch)
        AND EXISTS (SELECT FROM fence.epoch_range r WHERE r.tier <> claim_epoch.tier AND r.epoch >= claim_epoch.epoch)
    THEN
        RETURN false;
    END IF;
    PERFORM fence.register_epoch(claim_epoch.tier, claim_epoch.epoch);
    RETURN true;
END
$$;

-- How the store of a tier was last seen; NULL when it never was.
CREATE OR REPLACE FUNCTION fence.recall_store(tier text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT m.memory FROM fence.store_memory m WHERE m.tier = recall_store.tier
$$;

-- Remembers how it is now, if what is remembered is still `before` (NULL for nothing). False when it is not.
CREATE OR REPLACE FUNCTION fence.remember_store(tier text, before text, now text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    PERFORM fence.require_witness();
    PERFORM fence.require_name('tier', remember_store.tier);
    IF remember_store.before IS NULL THEN
        INSERT INTO fence.store_memory (tier, memory) VALUES (remember_store.tier, remember_store.now)
        ON CONFLICT DO NOTHING;
    ELSE
        UPDATE fence.store_memory m SET memory = remember_store.now, seen_at = clock_timestamp()
        WHERE m.tier = remember_store.tier AND m.memory = remember_store.before;
    END IF;
    RETURN FOUND;
END
$$;

REVOKE ALL ON FUNCTION fence.require_witness, fence.claim_epoch, fence.recall_store, fence.remember_store FROM PUBLIC;

INSERT INTO fence.migration (name) VALUES ('0014_witness.sql') ON CONFLICT DO NOTHING;
COMMIT;
