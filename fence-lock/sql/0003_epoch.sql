-- Epochs, and whether this is still the database that they were begun in.
BEGIN;

-- Which history this is: the cluster's identifier, its timeline, and the database. All three are another after the database was
-- dumped and restored, and the timeline after a failover or a restore to a point in time. A data directory that was put back
-- keeps all of them: after any restore, begin a new epoch.
CREATE OR REPLACE FUNCTION fence_lock.identity() RETURNS text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    SELECT concat_ws(':', (SELECT c.system_identifier FROM pg_control_system() c),
        substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8),
        (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
$$;

-- Held shared by a grant until it is committed, and alone by an epoch that begins: no token of an old epoch is granted after
-- a new one has begun.
CREATE OR REPLACE FUNCTION fence_lock.epoch_lock() RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$ SELECT hashtextextended('fence_lock.epoch', 0) $$;

-- Begins the first epoch, once. False, and nothing is changed, when there is one already.
CREATE OR REPLACE FUNCTION fence_lock.init(asked_tier text, asked_epoch integer, asked_reason text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM fence_lock.begin_step();
    PERFORM pg_advisory_xact_lock(fence_lock.epoch_lock());
    IF EXISTS (SELECT FROM fence_lock.epoch) THEN
        RETURN false;
    END IF;
    INSERT INTO fence_lock.epoch (epoch, identity, tier, reason)
    VALUES (asked_epoch, fence_lock.identity(), asked_tier, asked_reason);
    RETURN true;
END $$;

-- Begins a higher epoch, in this database as it is now: after a restore, a failover, or for any other reason. Take a number
-- above every epoch that any store of the system was ever in.
CREATE OR REPLACE FUNCTION fence_lock.advance(asked_epoch integer, asked_reason text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    before record;
BEGIN
    PERFORM fence_lock.begin_step();
    PERFORM pg_advisory_xact_lock(fence_lock.epoch_lock());
    SELECT e.epoch, e.tier INTO before FROM fence_lock.epoch e ORDER BY e.epoch DESC LIMIT 1;
    IF before.epoch IS NULL OR asked_epoch <= before.epoch THEN
        RAISE EXCEPTION 'an epoch above % is asked for, got %', coalesce(before.epoch::text, 'the first'), asked_epoch
            USING ERRCODE = 'invalid_parameter_value', HINT = 'the first epoch is begun by fence_lock.init';
    END IF;
    INSERT INTO fence_lock.epoch (epoch, identity, tier, reason)
    VALUES (asked_epoch, fence_lock.identity(), before.tier, asked_reason);
END $$;

COMMIT;
