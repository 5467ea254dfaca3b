-- What the resource knows about tokens: classes, their tiers, and the ranges registered for each tier.
BEGIN;
SET LOCAL client_min_messages = warning;
LOCK TABLE fence.migration IN SHARE ROW EXCLUSIVE MODE;

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

-- Refuses what is no name of a class or tier: 1 to 64 of [a-z0-9_-], parts that begin with a letter, joined by points.
CREATE OR REPLACE FUNCTION fence.require_name(kind text, name text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF name IS NULL OR length(name) > 64 OR name COLLATE "C" !~ '^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*$' THEN
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
                          'for that one: DROP TRIGGER fence_enforce ON each, then fence.protect, in one transaction.',
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
    INSERT INTO fence.epoch_range (tier, epoch, first, ceiling)
    VALUES (register_epoch.tier, register_epoch.epoch, first_token, coalesce(register_epoch.ceiling, last_token))
    ON CONFLICT DO NOTHING;
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

REVOKE ALL ON FUNCTION fence.require_name, fence.declare, fence.give_tier, fence.declare_guarded, fence.register_epoch
    FROM PUBLIC;

INSERT INTO fence.migration (name) VALUES ('0002_register.sql') ON CONFLICT DO NOTHING;
COMMIT;
