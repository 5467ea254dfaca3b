-- The grant.
BEGIN;

-- Locks the row of a lock, which is made first when there is none.
CREATE OR REPLACE FUNCTION fence_lock.take_row(wanted_class text, wanted_key text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM fence_lock.lock l WHERE l.class = wanted_class AND l.key = wanted_key FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO fence_lock.lock (class, key) VALUES (wanted_class, wanted_key) ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            PERFORM FROM fence_lock.lock l WHERE l.class = wanted_class AND l.key = wanted_key FOR UPDATE;
        END IF;
    END IF;
END $$;

-- Grants all of the keys, or takes one place in the queue of each, if the attempt has none yet. The outcome is one of
--
--   granted           token is the grant's
--   queued            somebody is ahead; retry_ms is when the first of them expires
--   session over      the session has expired or was closed
--   given up          the attempt was given up
--   not initialised   the store has no epoch
--   other store       the epoch was begun in the database `recorded`, this is `actual`
--   other tier        the epoch is of the tier `recorded`
--   went back         the token `actual` would not be above the last one, `recorded`: history was lost
--
-- Ask again, with the same attempt, when woken or after retry_ms. A grant counts once fence_lock.confirm has seen it.
CREATE OR REPLACE FUNCTION fence_lock.acquire(
    asking text, wanted_class text, wanted_keys text[], attempt text, asked_tier text, wake_on text DEFAULT NULL,
    OUT outcome text, OUT token bigint, OUT retry_ms bigint, OUT recorded text, OUT actual text
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    in_force record;
    wanted text;
    our_place bigint;
    ahead text;
    in_the_way text[] := '{}';
    newest bigint;
BEGIN
    PERFORM fence_lock.begin_step();
    PERFORM pg_advisory_xact_lock_shared(fence_lock.epoch_lock());
    SELECT e.epoch, e.identity, e.tier INTO in_force FROM fence_lock.epoch e ORDER BY e.epoch DESC LIMIT 1;
    actual := fence_lock.identity();
    CASE
        WHEN in_force.epoch IS NULL THEN outcome := 'not initialised'; RETURN;
        WHEN in_force.identity <> actual THEN outcome := 'other store'; recorded := in_force.identity; RETURN;
        WHEN in_force.tier <> asked_tier THEN outcome := 'other tier'; recorded := in_force.tier; RETURN;
        ELSE actual := NULL;
    END CASE;

    -- One order for everybody, so that nobody waits in a circle.
    SELECT array_agg(DISTINCT k COLLATE "C" ORDER BY k COLLATE "C") INTO wanted_keys FROM unnest(wanted_keys) k;
    FOREACH wanted IN ARRAY wanted_keys LOOP
        PERFORM fence_lock.take_row(wanted_class, wanted);
    END LOOP;

    -- Every look from here on is a statement of its own, which sees what was committed while the rows were waited for.
    SELECT min(w.place) INTO our_place FROM fence_lock.waiter w WHERE w.grant_id = attempt AND w.session = asking;
    FOREACH wanted IN ARRAY wanted_keys LOOP
        SELECT l.session INTO ahead FROM fence_lock.lock l WHERE l.class = wanted_class AND l.key = wanted;
        IF ahead IS NOT NULL AND NOT fence_lock.end_lapsed(ahead) THEN
            in_the_way := in_the_way || ahead;
        END IF;
        -- The waiter right before us; one that has lapsed leaves the queue, and the one before it counts.
        LOOP
            SELECT w.session INTO ahead FROM fence_lock.waiter w
            WHERE w.class = wanted_class AND w.key = wanted AND w.grant_id <> attempt
                AND (our_place IS NULL OR w.place < our_place)
            ORDER BY w.place DESC LIMIT 1;
            EXIT WHEN NOT FOUND;
            IF NOT fence_lock.end_lapsed(ahead) THEN
                in_the_way := in_the_way || ahead;
                EXIT;
            END IF;
        END LOOP;
    END LOOP;

    -- Nobody ends our session before this is committed.
    PERFORM FROM fence_lock.session s WHERE s.session = asking AND s.expires_at > clock_timestamp() FOR KEY SHARE;
    IF NOT FOUND THEN
        outcome := 'session over';
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM fence_lock.given_up g WHERE g.session = asking AND g.grant_id = attempt) THEN
        outcome := 'given up';
        RETURN;
    END IF;

    IF in_the_way = '{}' THEN
        -- Drawn now, with the rows locked: whoever was granted before us drew before us.
        token := in_force.epoch * 281474976710656 + nextval('fence_lock.token');
        SELECT max(l.last_token) INTO newest FROM fence_lock.lock l
        WHERE l.class = wanted_class AND l.key = ANY (wanted_keys);
        IF newest >= token THEN
            outcome := 'went back';
            recorded := newest;
            actual := token;
            token := NULL;
            RETURN;
        END IF;
        UPDATE fence_lock.lock l
        SET last_token = acquire.token, grant_id = attempt, session = asking, granted_at = clock_timestamp()
        WHERE l.class = wanted_class AND l.key = ANY (wanted_keys);
        DELETE FROM fence_lock.waiter w WHERE w.grant_id = attempt AND w.session = asking;
        outcome := 'granted';
        RETURN;
    END IF;
    IF our_place IS NULL THEN
        our_place := nextval('fence_lock.place');
        INSERT INTO fence_lock.waiter (class, key, place, grant_id, session, since, channel)
        SELECT wanted_class, k, our_place, attempt, asking, clock_timestamp(), wake_on FROM unnest(wanted_keys) k;
    END IF;
    SELECT greatest(0, ceil(extract(epoch FROM min(s.expires_at) - clock_timestamp()) * 1000)) INTO retry_ms
    FROM fence_lock.session s WHERE s.session = ANY (in_the_way);
    outcome := 'queued';
END $$;

-- Whether a grant that was answered is still there, of a session that lives: only then it counts.
CREATE OR REPLACE FUNCTION fence_lock.confirm(
    asking text, wanted_class text, wanted_keys text[], attempt text, granted_token bigint
) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT fence_lock.is_live(asking) AND NOT EXISTS (
        SELECT FROM unnest(wanted_keys) k
        LEFT JOIN fence_lock.lock l ON l.class = wanted_class AND l.key = k AND l.grant_id = attempt
            AND l.session = asking AND l.last_token = granted_token
        WHERE l.key IS NULL
    )
$$;

COMMIT;
