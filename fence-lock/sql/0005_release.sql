-- The two ways out.
BEGIN;

-- Frees what this grant, and no other, holds. True when it held every one of its keys.
CREATE OR REPLACE FUNCTION fence_lock.release(
    asking text, held_class text, held_keys text[], attempt text, held_token bigint
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    held text;
    freed integer := 0;
BEGIN
    PERFORM fence_lock.begin_step();
    -- A session that has expired holds nothing, whoever takes its place.
    IF NOT fence_lock.is_live(asking) THEN
        RETURN false;
    END IF;
    FOR held IN SELECT DISTINCT k COLLATE "C" FROM unnest(held_keys) k ORDER BY 1 LOOP
        UPDATE fence_lock.lock l SET grant_id = NULL, session = NULL
        WHERE l.class = held_class AND l.key = held
            AND l.grant_id = attempt AND l.session = asking AND l.last_token = held_token;
        IF FOUND THEN
            freed := freed + 1;
            PERFORM fence_lock.wake(held_class, held);
        END IF;
    END LOOP;
    RETURN freed = (SELECT count(DISTINCT k) FROM unnest(held_keys) k);
END $$;

-- Gives an attempt up. With something of it still on its way (may_land) it is remembered while its session lives, so that
-- nothing of it lands later; what landed before is taken back.
CREATE OR REPLACE FUNCTION fence_lock.give_up(
    asking text, wanted_class text, wanted_keys text[], attempt text, may_land boolean
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted text;
BEGIN
    PERFORM fence_lock.begin_step();
    IF may_land THEN
        -- For a session that is gone nothing lands.
        INSERT INTO fence_lock.given_up (session, grant_id)
        SELECT s.session, attempt FROM fence_lock.session s WHERE s.session = asking FOR KEY SHARE
        ON CONFLICT DO NOTHING;
    END IF;
    -- An acquisition that is under way holds these rows to its end: it has landed then, or will see the line above.
    FOR wanted IN SELECT DISTINCT k COLLATE "C" FROM unnest(wanted_keys) k ORDER BY 1 LOOP
        PERFORM fence_lock.take_row(wanted_class, wanted);
    END LOOP;
    UPDATE fence_lock.lock l SET grant_id = NULL, session = NULL WHERE l.class = wanted_class
        AND l.key = ANY (wanted_keys) AND l.grant_id = attempt AND l.session = asking;
    DELETE FROM fence_lock.waiter w WHERE w.grant_id = attempt AND w.session = asking;
    PERFORM fence_lock.wake(wanted_class, k) FROM unnest(wanted_keys) k;
END $$;

COMMIT;
