-- Losses: how an operator stops admissions and lets them go on, and how a memory kept outside finds a loss that the database
-- cannot see in itself.
--
--     SELECT fence.stop('restoring from last night''s backup');
--     SELECT fence.register_epoch('entity', 8);                    -- above every epoch that was ever granted from
--     SELECT fence.acknowledge('restored; epoch 8 from here on');
--
-- fence.admit looks by itself: after a promotion, a point-in-time restore, or a dump restored elsewhere it answers ZF008 until
-- an operator has acknowledged. A planned switchover looks the same, and is acknowledged with nothing_lost => true.
-- The column guard asks nobody, and has no floor: stop its writers by hand, and raise its columns as fence.acknowledge tells.
--
-- A data directory or volume that is put back as it was shows nothing of it from inside. Keep a memory elsewhere, taken by
-- SELECT fence.remember() and kept once that is committed, and compare it with SELECT fence.compare_memory('...') after every
-- start: it finds every loss of what was there when the memory was taken, and none that is younger.
BEGIN;
SET LOCAL client_min_messages = warning;
LOCK TABLE fence.migration IN SHARE ROW EXCLUSIVE MODE;
SET LOCAL lock_timeout = '1s';

-- Generations that have ended, each by an acknowledgement.
CREATE TABLE IF NOT EXISTS fence.past_generation (
    generation uuid PRIMARY KEY,
    ended_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What has been given out to be remembered elsewhere, the newest 10000.
CREATE TABLE IF NOT EXISTS fence.memory (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    generation uuid NOT NULL,
    word uuid NOT NULL DEFAULT gen_random_uuid(),
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Stops every admission (ZF008) until fence.acknowledge. A transaction that was admitted before may still commit.
CREATE OR REPLACE FUNCTION fence.stop(reason text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    before text := fence.doubt();
BEGIN
    PERFORM fence.require_latest('admissions are stopped');
    PERFORM fence.log_danger('stop', NULL, NULL, before, NULL, stop.reason);
    -- It waits, within lock_timeout, for admissions that are just remembering that all is sound.
    UPDATE fence.history h SET stopped = coalesce(h.stopped, stop.reason),
        stopped_at = coalesce(h.stopped_at, clock_timestamp());
    UPDATE fence.class c SET sound_start = NULL WHERE c.sound_start IS NOT NULL;
    PERFORM fence.change_standing();
END
$$;

-- Lets admissions go on, in a new generation. Unless nothing_lost, what was lost is fenced off first: each tier in use must have
-- an epoch that was registered since, and the floor of each of its classes is raised to that epoch's first token, so that no
-- older one is taken again, whatever its mark was. The epoch must be above every one that was ever granted from; no database
-- that has lost its newest can check that. A class without a tier has no epochs: raise its floor first, by
-- fence.raise_floor, above every token that was ever granted.
CREATE OR REPLACE FUNCTION fence.acknowledge(reason text, nothing_lost boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    doubt text := fence.doubt();
    remembered fence.history;
BEGIN
    PERFORM fence.require_latest('history is acknowledged');
    IF doubt IS NULL THEN
        RAISE NOTICE 'the history of this database is not in doubt: there is nothing to acknowledge';
        RETURN;
    END IF;
    PERFORM fence.log_danger('acknowledge', NULL, NULL, doubt,
                             CASE WHEN acknowledge.nothing_lost THEN 'nothing was lost' ELSE 'older tokens are fenced off' END,
                             acknowledge.reason);
    SELECT * INTO remembered FROM fence.history FOR UPDATE;
    IF acknowledge.nothing_lost IS NOT TRUE THEN
        PERFORM fence.fence_off(remembered.stopped_at);
    END IF;
    INSERT INTO fence.past_generation (generation) SELECT remembered.generation WHERE remembered.generation IS NOT NULL;
    INSERT INTO fence.history AS h (system_identifier, timeline, home)
    VALUES (fence.system_identifier(), fence.timeline(), fence.home())
    ON CONFLICT (one) DO UPDATE SET generation = gen_random_uuid(), began_at = clock_timestamp(),
        system_identifier = excluded.system_identifier, timeline = excluded.timeline, home = excluded.home,
        stopped = NULL, stopped_at = NULL;
    PERFORM fence.change_standing();
END
$$;

-- Raises the floors that an acknowledged loss needs, or says what is missing for that.
CREATE OR REPLACE FUNCTION fence.fence_off(stopped_at timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    here text := fence.here();
    open_class record;
BEGIN
    FOR open_class IN
        SELECT c.name, c.tier,
               (SELECT max(r.first) FROM fence.epoch_range r
                WHERE r.tier = c.tier AND r.registered_here = here
                  AND (fence_off.stopped_at IS NULL OR r.registered_at > fence_off.stopped_at)) AS first,
               (SELECT max(r.epoch) FROM fence.epoch_range r WHERE r.tier = c.tier) AS known,
               (SELECT max(h.token) FROM fence.high_water h WHERE h.class = c.name) AS highest,
               coalesce(c.floor_raised_here = here, false)
                   AND (fence_off.stopped_at IS NULL OR c.floor_raised_at > fence_off.stopped_at) AS raised
        FROM fence.class c ORDER BY c.name FOR NO KEY UPDATE OF c
    LOOP
        IF open_class.tier IS NULL THEN
            IF NOT open_class.raised AND open_class.highest IS NOT NULL THEN
                RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
                    MESSAGE = format('class %s has no tier, so its floor has to be raised by hand', open_class.name),
                    DETAIL = format('its highest mark that is left is %s; newer ones may have been lost', open_class.highest),
                    HINT = format('SELECT fence.raise_floor(%L, TOKEN), with one above every token that was ever granted. '
                                  'Only if certainly nothing was lost, as in a planned switchover: '
                                  'SELECT fence.acknowledge(''REASON'', nothing_lost => true).', open_class.name);
            END IF;
        ELSIF open_class.first IS NULL OR open_class.first <= open_class.highest THEN
            RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
                MESSAGE = format('tier %s has no epoch of its own since its history came into doubt', open_class.tier),
                DETAIL = format('the highest epoch known here is %s; class %s uses it', coalesce(open_class.known::text, 'none'), open_class.name),
                HINT = format('Advance the epoch in the lock store, above every one that was ever granted from, then '
                              'SELECT fence.register_epoch(%L, EPOCH). Only if certainly nothing was lost, as in a planned '
                              'switchover: SELECT fence.acknowledge(''REASON'', nothing_lost => true).', open_class.tier);
        ELSE
            PERFORM fence.raise_floor(open_class.name, open_class.first);
        END IF;
    END LOOP;
    PERFORM fence.tell_columns();
END
$$;

-- Says what has to be done by hand where rows bear their own marks.
CREATE OR REPLACE FUNCTION fence.tell_columns() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    guarded record;
BEGIN
    FOR guarded IN
        SELECT g.relation, g.token_column, c.floor
        FROM fence.guarded g JOIN fence.class c ON c.name = g.class JOIN pg_class r ON r.oid = g.relation
        WHERE g.guard = 'column' ORDER BY g.name
    LOOP
        RAISE NOTICE USING
            MESSAGE = format('rows of %s may have lost newer tokens; raise them by hand: UPDATE %s SET %I = %s WHERE %I < %s',
                             guarded.relation, guarded.relation, guarded.token_column, guarded.floor,
                             guarded.token_column, guarded.floor),
            HINT = 'Until then its rows take tokens from before the loss: the column guard has no floor.';
    END LOOP;
END
$$;

-- What it does must see everything committed so far.
CREATE OR REPLACE FUNCTION fence.require_latest(what text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format('%s at READ COMMITTED only', what),
            HINT = 'Above it, what was committed since the snapshot would not be seen. Use a transaction of its own.';
    END IF;
END
$$;

-- A memory of the present history, to be kept outside this database. Keep it only once this is committed.
CREATE OR REPLACE FUNCTION fence.remember() RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    present fence.history;
    given fence.memory;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
    PERFORM fence.require_sound();
    SELECT * INTO STRICT present FROM fence.history;
    INSERT INTO fence.memory (generation) VALUES (present.generation) RETURNING * INTO given;
    DELETE FROM fence.memory m WHERE m.number <= given.number - 10000;
    RETURN format('fence-memory-1 database=%s generation=%s number=%s word=%s timeline=%s lsn=%s at=%s',
                  present.database, present.generation, given.number, given.word, coalesce(present.timeline, '-'),
                  fence.lsn(), to_char(given.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'));
END
$$;

-- How far the server has written, for people; '-' where the installing role may not know.
CREATE OR REPLACE FUNCTION fence.lsn() RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN pg_current_wal_insert_lsn();
EXCEPTION WHEN insufficient_privilege OR undefined_function OR feature_not_supported
    OR object_not_in_prerequisite_state THEN
    RETURN '-';
END
$$;

-- A history in doubt gives out no memory: it would stand for what was lost.
CREATE OR REPLACE FUNCTION fence.require_sound() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    doubt text := fence.doubt();
BEGIN
    IF doubt IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF008',
            MESSAGE = 'the history of this database is in doubt: it gives out no memory',
            DETAIL = doubt,
            HINT = 'Compare the memory that was kept; then acknowledge, and take a new one.';
    END IF;
END
$$;

-- Compares a memory kept outside with what the database remembers:
--   same      it is the newest that was given out
--   ahead     it is known, and newer ones were given out, or it is of a generation whose end was acknowledged
--   lost      this database has lost it, and whatever came later: admissions stop once this is committed
--   stranger  it is of another database; nothing is stopped
CREATE OR REPLACE FUNCTION fence.compare_memory(memory text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    parts text[] := regexp_match(compare_memory.memory, E'^[[:space:]]*fence-memory-1 database=([0-9a-f-]{36}) generation=([0-9a-f-]{36}) '
                                          'number=([0-9]{1,18}) word=([0-9a-f-]{36})( [^\n]*)?[[:space:]]*$');
    present fence.history;
    known fence.memory;
BEGIN
    IF parts IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('%L is no memory of a database', left(compare_memory.memory, 80)),
            HINT = 'Give the text that fence.remember() returned, whole.';
    END IF;
    PERFORM fence.require_latest('a memory is compared');
    SELECT * INTO present FROM fence.history;
    IF present.database IS DISTINCT FROM parts[1]::uuid THEN
        RETURN 'stranger';
    END IF;
    IF EXISTS (SELECT FROM fence.past_generation g WHERE g.generation = parts[2]::uuid) THEN
        RETURN 'ahead';
    END IF;
    IF present.generation = parts[2]::uuid THEN
        SELECT * INTO known FROM fence.memory m WHERE m.number = parts[3]::bigint;
        IF known.generation = present.generation AND known.word = parts[4]::uuid THEN
            RETURN CASE WHEN EXISTS (SELECT FROM fence.memory m WHERE m.number > known.number) THEN 'ahead' ELSE 'same' END;
        END IF;
        IF parts[3]::bigint < (SELECT min(m.number) FROM fence.memory m) THEN
            -- Too old to be judged.
            RETURN 'ahead';
        END IF;
    END IF;
    PERFORM fence.stop(format('it has lost what was remembered outside: %s', trim(compare_memory.memory, E' \n\r\t')));
    RETURN 'lost';
END
$$;

-- For people and programs that look after the database: 'known', 'in doubt' or 'stopped', why, and when a memory was last given
-- out (NULL: never).
CREATE OR REPLACE FUNCTION fence.history_status()
RETURNS TABLE (state text, reason text, outside_memory_at timestamptz)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN EXISTS (SELECT FROM fence.history h WHERE h.stopped IS NOT NULL) THEN 'stopped'
                WHEN d.doubt IS NOT NULL THEN 'in doubt'
                ELSE 'known' END,
           d.doubt,
           (SELECT max(m.at) FROM fence.memory m)
    FROM fence.doubt() AS d (doubt)
$$;

REVOKE ALL ON FUNCTION fence.stop, fence.acknowledge, fence.fence_off, fence.tell_columns, fence.require_latest, fence.remember, fence.lsn,
    fence.require_sound, fence.compare_memory, fence.history_status FROM PUBLIC;

INSERT INTO fence.migration (name) VALUES ('0010_history.sql') ON CONFLICT DO NOTHING;
COMMIT;
