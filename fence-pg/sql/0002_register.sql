-- What the resource knows: classes, their tiers, the ranges registered for each tier, and which history this database is.
BEGIN;
SET LOCAL client_min_messages = warning;
LOCK TABLE fence.migration IN SHARE ROW EXCLUSIVE MODE;
SET LOCAL lock_timeout = '1s';

CREATE TABLE IF NOT EXISTS fence.tier (
    name text PRIMARY KEY
);

-- A class without a tier takes another issuer's tokens: any range, no grant ids.
CREATE TABLE IF NOT EXISTS fence.class (
    name text PRIMARY KEY,
    tier text REFERENCES fence.tier (name),
    declared_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The tokens of one epoch that a tier's classes take: first to ceiling, both inside.
CREATE TABLE IF NOT EXISTS fence.epoch_range (
    tier text NOT NULL REFERENCES fence.tier (name),
    epoch integer NOT NULL,
    first bigint NOT NULL,
    ceiling bigint NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tier, epoch)
);

-- Which history this database is: one row. What is NULL could not be read, and is not judged.
CREATE TABLE IF NOT EXISTS fence.history (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    -- Stays through every acknowledgement.
    database uuid NOT NULL DEFAULT gen_random_uuid(),
    -- A new one begins with every acknowledgement.
    generation uuid NOT NULL DEFAULT gen_random_uuid(),
    began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    system_identifier bigint,
    timeline text,
    home bigint NOT NULL,
    -- Why nothing is admitted until an operator acknowledges, and since when; NULL unless somebody stopped it.
    stopped text,
    stopped_at timestamptz
);

-- Changes with every stop, acknowledgement and raised floor; fence.history.standing is its last committed value.
CREATE SEQUENCE IF NOT EXISTS fence.standing;
SELECT nextval('fence.standing') WHERE NOT (SELECT s.is_called FROM fence.standing s);

-- Columns that came later. One that is there is left alone: ALTER TABLE would wait for every open admission, and let none in.
DO $$
DECLARE
    later record;
BEGIN
    FOR later IN
        SELECT * FROM (VALUES
            -- A key of the class whose mark is below its floor, or that has none, reads as the floor. A floor never falls.
            ('fence.class', 'floor', 'bigint NOT NULL DEFAULT 0'),
            ('fence.class', 'floor_raised_at', 'timestamptz'),
            ('fence.class', 'floor_raised_here', 'text'),
            -- Where and under which start of the server the database's history was last found sound for this class: an
            -- admission compares these two, and looks closer only when they differ.
            ('fence.class', 'sound_start', 'timestamptz'),
            ('fence.class', 'sound_home', 'bigint'),
            -- Where it was registered, as fence.here() says: an epoch registered before a loss does not cover the loss.
            ('fence.epoch_range', 'registered_here', 'text'),
            ('fence.history', 'standing', 'bigint NOT NULL DEFAULT 1')
        ) AS l (relation, name, definition)
        WHERE NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = l.relation::regclass AND a.attname = l.name)
    LOOP
        EXECUTE format('ALTER TABLE %s ADD COLUMN %I %s', later.relation, later.name, later.definition);
    END LOOP;
    -- Only a column of a unique index makes its change a change of the key, which a lock FOR KEY SHARE sees.
    IF to_regclass('fence.history_standing') IS NULL THEN
        CREATE UNIQUE INDEX history_standing ON fence.history (one, standing);
    END IF;
END
$$;

-- Refuses what is no name of a class or tier: 1 to 64 of [a-z0-9_-], parts that begin with a letter, joined by points.
CREATE OR REPLACE FUNCTION fence.require_name(kind text, name text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF name IS NULL OR length(name) > 64 OR name COLLATE "C" !~ '^[a-z][a-z0-9_-]*([.][a-z][a-z0-9_-]*)*$' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('%L is no name of a %s', name, kind),
            HINT = 'Write 1 to 64 of [a-z0-9_-], in parts that begin with a letter, joined by points.';
    END IF;
END
$$;

-- Declares a class, of a tier or (without one) for another issuer's tokens. Again with the same tier: no change. A class that
-- has neither a tier nor a mark may still be given one.
CREATE OR REPLACE FUNCTION fence.declare(class text, tier text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    known record;
BEGIN
    PERFORM fence.require_name('class', declare.class);
    IF declare.tier IS NOT NULL THEN
        PERFORM fence.require_name('tier', declare.tier);
        INSERT INTO fence.tier (name) VALUES (declare.tier) ON CONFLICT DO NOTHING;
    END IF;
    INSERT INTO fence.class (name, tier) VALUES (declare.class, declare.tier) ON CONFLICT DO NOTHING;
    SELECT c.tier INTO STRICT known FROM fence.class c WHERE c.name = declare.class;
    IF known.tier IS NULL AND declare.tier IS NOT NULL THEN
        PERFORM fence.give_tier(declare.class, declare.tier);
    ELSIF known.tier IS DISTINCT FROM declare.tier THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('class %s is already declared in tier %s', declare.class, known.tier),
            HINT = format('A class stays in its tier: SELECT fence.declare(%L, %L). '
                          'For other tokens declare a new class, and guard the tables for that one.',
                          declare.class, known.tier);
    END IF;
END
$$;

-- Gives a class without a tier its tier, as long as no other issuer's token has left a mark.
CREATE OR REPLACE FUNCTION fence.give_tier(class text, tier text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    marked_key text;
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = 'a class is given a tier at READ COMMITTED only',
            HINT = 'Above it, a mark committed since the snapshot would not be seen. Use a transaction of its own.';
    END IF;
    -- A first mark of a class without a tier shares this row's lock until it is committed: none comes between.
    PERFORM FROM fence.class c WHERE c.name = give_tier.class FOR UPDATE;
    SELECT h.key INTO marked_key FROM fence.high_water h WHERE h.class = give_tier.class LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('class %s is already declared without a tier, and has marks', give_tier.class),
            DETAIL = format('key %L, for one, has a mark', marked_key),
            HINT = format('A mark stays with the issuer of its token. Declare a new class in tier %s, and guard the tables '
                          'for that one: fence.unprotect, then fence.protect, each of them in one transaction.',
                          give_tier.tier);
    END IF;
    UPDATE fence.class c SET tier = give_tier.tier WHERE c.name = give_tier.class AND c.tier IS NULL;
    IF NOT FOUND THEN
        -- Somebody else gave it one meanwhile.
        PERFORM fence.declare(give_tier.class, give_tier.tier);
    END IF;
END
$$;

-- Declares a class for a table that is being guarded, without a tier, unless it is declared.
CREATE OR REPLACE FUNCTION fence.declare_guarded(class text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM fence.class c WHERE c.name = declare_guarded.class) THEN
        RETURN;
    END IF;
    PERFORM fence.declare(declare_guarded.class);
    RAISE NOTICE USING
        MESSAGE = format('class %s was declared without a tier: it takes any issuer''s tokens, and no grant ids',
                         declare_guarded.class),
        HINT = format('If its tokens come from a tier, say so before the first one is admitted: '
                      'SELECT fence.declare(%L, ''TIER'').', declare_guarded.class);
END
$$;

-- Opens the range of an epoch for a tier, up to ceiling or to the epoch's last token. Again: a higher ceiling moves the
-- range's end up, a lower one is refused, none changes nothing.
CREATE OR REPLACE FUNCTION fence.register_epoch(tier text, epoch integer, ceiling bigint DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    first_token bigint;
    last_token bigint;
    known bigint;
BEGIN
    PERFORM fence.require_name('tier', register_epoch.tier);
    IF register_epoch.epoch IS NULL OR register_epoch.epoch NOT BETWEEN 1 AND 32767 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('an epoch is 1 to 32767, got %s', coalesce(register_epoch.epoch::text, 'NULL')),
            HINT = 'The epoch of a token is its upper part: SELECT TOKEN >> 48.';
    END IF;
    -- A token is epoch * 2^48 + revision, with revision 1 to 2^48 - 1.
    first_token := (register_epoch.epoch::bigint << 48) + 1;
    last_token := first_token + 281474976710654;
    IF register_epoch.ceiling NOT BETWEEN first_token AND last_token THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('ceiling %s is no token of epoch %s', register_epoch.ceiling, register_epoch.epoch),
            HINT = format('Give one of %s to %s, or none.', first_token, last_token);
    END IF;
    INSERT INTO fence.tier (name) VALUES (register_epoch.tier) ON CONFLICT DO NOTHING;
    INSERT INTO fence.epoch_range (tier, epoch, first, ceiling, registered_here)
    VALUES (register_epoch.tier, register_epoch.epoch, first_token, coalesce(register_epoch.ceiling, last_token),
            fence.here())
    ON CONFLICT DO NOTHING;
    IF FOUND AND NOT EXISTS (SELECT FROM fence.class c WHERE c.tier = register_epoch.tier) THEN
        RAISE NOTICE USING
            MESSAGE = format('no class is declared in tier %s', register_epoch.tier),
            HINT = format('A typing error? The tiers in use: %s. A class is declared in this one by '
                          'SELECT fence.declare(''CLASS'', %L).',
                          coalesce((SELECT string_agg(DISTINCT c.tier, ', ') FROM fence.class c), 'none'),
                          register_epoch.tier);
    END IF;
    IF FOUND OR register_epoch.ceiling IS NULL THEN
        RETURN;
    END IF;
    SELECT r.ceiling INTO STRICT known FROM fence.epoch_range r
    WHERE r.tier = register_epoch.tier AND r.epoch = register_epoch.epoch FOR UPDATE;
    IF register_epoch.ceiling < known THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('ceiling %s is below the registered one, %s', register_epoch.ceiling, known),
            HINT = 'A ceiling only moves up: tokens up to the registered one may have been admitted.';
    END IF;
    UPDATE fence.epoch_range r SET ceiling = register_epoch.ceiling
    WHERE r.tier = register_epoch.tier AND r.epoch = register_epoch.epoch AND r.ceiling < register_epoch.ceiling;
END
$$;

-- Which database this is, and which fence.class in it: a copy of a database, or a dump restored beside it, has another.
-- A session sees one value all its life, and keeps its plans to itself, so it may be folded into them.
CREATE OR REPLACE FUNCTION fence.home() RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT (d.oid::bigint << 32) | 'fence.class'::regclass::oid::bigint FROM pg_database d WHERE d.datname = current_database()
$$;

-- The cluster's system identifier; NULL where the installing role may not know.
CREATE OR REPLACE FUNCTION fence.system_identifier() RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN (SELECT s.system_identifier FROM pg_control_system() s);
EXCEPTION WHEN insufficient_privilege OR undefined_function OR feature_not_supported
    OR object_not_in_prerequisite_state THEN
    RETURN NULL;
END
$$;

-- The timeline that the server writes, as 8 hex digits; NULL where the installing role may not know.
CREATE OR REPLACE FUNCTION fence.timeline() RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN left(pg_walfile_name(pg_current_wal_insert_lsn()), 8);
EXCEPTION WHEN insufficient_privilege OR undefined_function OR feature_not_supported
    OR object_not_in_prerequisite_state THEN
    RETURN NULL;
END
$$;

-- All of it in one text: equal as long as the history goes on.
CREATE OR REPLACE FUNCTION fence.here() RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$
    SELECT format('%s/%s/%s', fence.system_identifier(), fence.timeline(), fence.home())
$$;

-- What a witness remembers of the lock store's epochs: each that was registered here, with its ceiling, and how many classes
-- take its tokens. A class without a tier makes no witness. One whose history is in doubt may have forgotten the newest.
CREATE OR REPLACE FUNCTION fence.known_epochs()
RETURNS TABLE (tier text, epoch integer, first bigint, ceiling bigint, registered_at timestamptz, classes bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT r.tier, r.epoch, r.first, r.ceiling, r.registered_at,
           (SELECT count(*) FROM fence.class c WHERE c.tier = r.tier)
    FROM fence.epoch_range r ORDER BY r.tier, r.epoch
$$;

-- Why this database may have lost marks, or is stopped; NULL when neither is known. A standby that was promoted and a
-- point-in-time restore are on another timeline, a dump restored elsewhere is in another cluster. A data directory that was
-- put back shows nothing of it: only a memory kept outside sees that.
CREATE OR REPLACE FUNCTION fence.doubt() RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    remembered fence.history;
    present_timeline text := fence.timeline();
    present_system bigint := fence.system_identifier();
BEGIN
    SELECT * INTO remembered FROM fence.history;
    RETURN CASE
        WHEN remembered.generation IS NULL THEN 'the database remembers no history of its own'
        WHEN remembered.stopped IS NOT NULL THEN
            format('it was stopped at %s: %s', remembered.stopped_at, remembered.stopped)
        WHEN remembered.system_identifier <> present_system THEN
            format('it comes from another cluster: its system identifier was %s, and is %s',
                   remembered.system_identifier, present_system)
        WHEN remembered.timeline <> present_timeline THEN
            format('the server was promoted or restored: its timeline was %s, and is %s',
                   remembered.timeline, present_timeline)
        WHEN remembered.home <> fence.home() THEN 'it is a copy, or was restored from a dump'
    END;
END
$$;

-- Above READ COMMITTED: ends a transaction (40001) whose snapshot is older than the last stop, acknowledgement or raised floor.
-- The sequence is read as it is now, whatever the snapshot; it differs from the row also while such a change is under way or
-- after one that was rolled back, and then the row's lock tells.
CREATE OR REPLACE FUNCTION fence.require_standing() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (SELECT s.last_value FROM fence.standing s) IS DISTINCT FROM (SELECT h.standing FROM fence.history h) THEN
        PERFORM FROM fence.history h FOR KEY SHARE NOWAIT;
    END IF;
EXCEPTION WHEN lock_not_available THEN
    RAISE EXCEPTION USING ERRCODE = 'serialization_failure',
        MESSAGE = 'admissions are being stopped, or let go on, or a floor is being raised',
        HINT = 'Try the whole transaction again, with the same token.';
END
$$;

-- Called by an admission that does not find its class sound: returns after nothing but a restart, and raises ZF008 when the
-- history is in doubt.
CREATE OR REPLACE FUNCTION fence.require_history(class text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    doubt text;
    mine boolean := false;
BEGIN
    -- That it is sound is remembered by whoever need not wait for it. It is looked at with the history in hand: a stop that
    -- came between is seen (above READ COMMITTED, as 40001), and one that comes later waits, and takes the memory back.
    PERFORM FROM fence.history FOR SHARE SKIP LOCKED;
    IF FOUND THEN
        BEGIN
            PERFORM FROM fence.class c WHERE c.name = require_history.class FOR NO KEY UPDATE SKIP LOCKED;
            mine := FOUND;
        EXCEPTION WHEN serialization_failure THEN
            -- Another has remembered it since this snapshot.
            NULL;
        END;
    END IF;
    doubt := fence.doubt();
    IF doubt IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF008',
            MESSAGE = 'the history of this database is in doubt: nothing is admitted',
            DETAIL = doubt,
            HINT = 'Newer marks may have been lost. An operator advances the epoch of each tier, then runs '
                   'SELECT fence.acknowledge(''REASON'').';
    END IF;
    IF mine THEN
        UPDATE fence.class c SET sound_start = pg_postmaster_start_time(), sound_home = fence.home()
        WHERE c.name = require_history.class;
    END IF;
END
$$;

-- Says to every later admission, whatever its snapshot, that what is admitted has changed. Called where it has.
CREATE OR REPLACE FUNCTION fence.change_standing() RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$
    UPDATE fence.history h SET standing = nextval('fence.standing')
$$;

-- The history that is there when this is installed is taken as it is; applying this again does not overwrite it.
INSERT INTO fence.history (system_identifier, timeline, home)
SELECT fence.system_identifier(), fence.timeline(), fence.home()
WHERE NOT EXISTS (SELECT FROM fence.history);

REVOKE ALL ON FUNCTION fence.require_name, fence.declare, fence.give_tier, fence.declare_guarded, fence.register_epoch,
    fence.home, fence.system_identifier, fence.timeline, fence.here, fence.known_epochs, fence.doubt,
    fence.require_standing, fence.require_history, fence.change_standing FROM PUBLIC;

INSERT INTO fence.migration (name) VALUES ('0002_register.sql') ON CONFLICT DO NOTHING;
COMMIT;
