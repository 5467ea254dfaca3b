-- What an operator does to marks: a floor for a class, pruning behind it, and lowering one mark that bricks its key.
--
--     SELECT fence.raise_floor('paydb.account', (8::bigint << 48) + 1);    -- every older token is stale from now on
--     SELECT fence.prune('paydb.account', 10000);                          -- until it returns 0
--     SELECT fence.danger_lower('paydb.account', 'acct-1', 2251799813685300, 'b2f1', 'forged token, ticket 7');
BEGIN;
SET LOCAL client_min_messages = warning;
LOCK TABLE fence.migration IN SHARE ROW EXCLUSIVE MODE;
SET LOCAL lock_timeout = '1s';

CREATE OR REPLACE FUNCTION fence.keep_floor() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
        MESSAGE = format('the floor of class %s stays at %s: it never falls', OLD.name, OLD.floor),
        HINT = 'Marks below it may be gone, and read as the floor. For older tokens, guard the tables for a new class.';
END
$$;

DO $$
BEGIN
    PERFORM fence.keep_trigger('fence.class', 'keep_floor',
        'BEFORE UPDATE ON fence.class FOR EACH ROW WHEN (((new.floor IS NULL) OR (new.floor < old.floor))) '
        'EXECUTE FUNCTION fence.keep_floor()');
END
$$;

-- Raises the floor of a class: from now on a lower token is stale for each of its keys, whatever its mark is, also for a holder
-- that is at work. A floor that is there already or higher stays. For a class of a tier it is inside a registered range, such as
-- an epoch's first token. For one without a tier nothing is known about its tokens: one typed too high shuts the class for
-- good.
CREATE OR REPLACE FUNCTION fence.raise_floor(class text, token bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    declared record;
BEGIN
    PERFORM fence.require_latest('a floor is raised');
    SELECT c.tier INTO declared FROM fence.class c WHERE c.name = raise_floor.class FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF007', MESSAGE = format('class %L is not declared', raise_floor.class),
            HINT = 'A typing error? SELECT name, tier FROM fence.class lists the classes.';
    END IF;
    PERFORM fence.require_token_of(declared.tier, raise_floor.token);
    UPDATE fence.class c SET floor = greatest(c.floor, raise_floor.token), floor_raised_at = clock_timestamp(),
        floor_raised_here = fence.here()
    WHERE c.name = raise_floor.class;
    PERFORM fence.change_standing();
END
$$;

-- Refuses what no admission with this tier's tokens could present.
CREATE OR REPLACE FUNCTION fence.require_token_of(tier text, token bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    IF require_token_of.token IS NULL OR require_token_of.token < 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF003',
            MESSAGE = format('token %s is below 1', coalesce(require_token_of.token::text, 'NULL')),
            HINT = 'Tokens are 1 to 9223372036854775807.';
    END IF;
    IF require_token_of.tier IS NOT NULL AND NOT EXISTS (
        SELECT FROM fence.epoch_range r
        WHERE r.tier = require_token_of.tier AND require_token_of.token BETWEEN r.first AND r.ceiling
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF005',
            MESSAGE = format('token %s lies outside every range registered for tier %s',
                             require_token_of.token, require_token_of.tier),
            DETAIL = format('presented %s', require_token_of.token),
            HINT = fence.explain_range(require_token_of.tier, require_token_of.token);
    END IF;
END
$$;

-- Deletes up to so many marks of a class that are below its floor, and returns how many. Their keys read as the floor, before
-- and after. A mark that a transaction holds is left for the next time.
CREATE OR REPLACE FUNCTION fence.prune(class text, "limit" integer DEFAULT 1000) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    pruned bigint;
BEGIN
    PERFORM FROM fence.class c WHERE c.name = prune.class;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF007', MESSAGE = format('class %L is not declared', prune.class),
            HINT = 'A typing error? SELECT name, floor FROM fence.class lists the classes.';
    END IF;
    IF prune."limit" IS NULL OR prune."limit" < 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('a limit is at least 1, got %s', coalesce(prune."limit"::text, 'NULL')),
            HINT = 'Give how many marks one call may delete; 1000 keeps its transaction short.';
    END IF;
    DELETE FROM fence.high_water h
    USING (SELECT m.class, m.key FROM fence.class c JOIN fence.high_water m ON m.class = c.name AND m.token < c.floor
           WHERE c.name = prune.class LIMIT prune."limit" FOR UPDATE OF m SKIP LOCKED) gone
    WHERE h.class = gone.class AND h.key = gone.key;
    GET DIAGNOSTICS pruned = ROW_COUNT;
    RETURN pruned;
END
$$;

-- Lowers the mark of one key, after somebody raised it with a token that nobody was granted: the tokens above the new mark are
-- taken again, those that were late before among them. Logged in fence.danger_log. The new token is inside a registered range
-- and not below the floor; grant_id is the grant that may go on with an equal token, NULL for none.
CREATE OR REPLACE FUNCTION fence.danger_lower(class text, key text, token bigint, grant_id text, reason text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    mark record;
    seen bigint;
BEGIN
    PERFORM fence.require_latest('a mark is lowered');
    SELECT * INTO mark FROM fence.mark_of(danger_lower.class, danger_lower.key);
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF007', MESSAGE = format('class %L is not declared', danger_lower.class),
            HINT = 'A typing error? SELECT name, tier FROM fence.class lists the classes.';
    END IF;
    PERFORM fence.require_token_of(mark.tier, danger_lower.token);
    IF danger_lower.grant_id COLLATE "C" !~ '^[A-Za-z0-9._:-]{1,64}$' OR mark.tier IS NULL AND danger_lower.grant_id IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('%L is no grant id of class %s', left(danger_lower.grant_id, 80), danger_lower.class),
            HINT = 'A class without a tier keeps none; otherwise 1 to 64 of [A-Za-z0-9._:-], or NULL.';
    END IF;
    PERFORM fence.take_key(danger_lower.class, danger_lower.key);
    SELECT h.token INTO seen FROM fence.high_water h
    WHERE h.class = danger_lower.class AND h.key = danger_lower.key FOR UPDATE;
    IF seen IS NULL OR danger_lower.token >= seen OR danger_lower.token < mark.floor THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format('the mark of class %s, key %L, cannot be lowered to %s',
                             danger_lower.class, danger_lower.key, danger_lower.token),
            DETAIL = format('its mark is %s, the floor of the class is %s', coalesce(seen::text, 'none'), mark.floor),
            HINT = 'A mark is lowered to a token below it, and not below the floor. A higher one is simply admitted.';
    END IF;
    -- The line in the log is what lets the mark fall, in this transaction and to this token.
    PERFORM fence.log_danger('danger_lower', danger_lower.class, danger_lower.key, seen::text, danger_lower.token::text,
                             danger_lower.reason);
    UPDATE fence.high_water h SET token = danger_lower.token, grant_id = danger_lower.grant_id
    WHERE h.class = danger_lower.class AND h.key = danger_lower.key;
END
$$;

-- Whether this transaction has logged that the key's mark falls to this token.
CREATE OR REPLACE FUNCTION fence.may_fall(class text, key text, token bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (
        SELECT FROM fence.danger_log d
        WHERE d.what = 'danger_lower' AND d.class = may_fall.class AND d.key = may_fall.key AND d.after = may_fall.token::text
          AND d.xid = pg_current_xact_id() AND d.at = transaction_timestamp());
END
$$;

REVOKE ALL ON FUNCTION fence.keep_floor, fence.raise_floor, fence.require_token_of, fence.prune, fence.danger_lower,
    fence.may_fall FROM PUBLIC;

INSERT INTO fence.migration (name) VALUES ('0012_operate.sql') ON CONFLICT DO NOTHING;
COMMIT;
