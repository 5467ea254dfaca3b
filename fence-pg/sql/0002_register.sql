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

-- Declares a class, of a tier or (without one) for another issuer's tokens. Again with the same tier: no change.
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
    IF known.tier IS DISTINCT FROM declare.tier THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('class %s is already declared %s', declare.class,
                             coalesce('in tier ' || known.tier, 'without a tier')),
            HINT = 'A class stays in the tier that it was declared in.';
    END IF;
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
            MESSAGE = format('an epoch is 1 to 32767, got %s', coalesce(register_epoch.epoch::text, 'NULL'));
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

REVOKE ALL ON FUNCTION fence.require_name, fence.declare, fence.register_epoch FROM PUBLIC;

INSERT INTO fence.migration (name) VALUES ('0002_register.sql') ON CONFLICT DO NOTHING;
COMMIT;
