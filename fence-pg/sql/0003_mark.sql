-- The marks: the largest token accepted for each key, and which transaction admitted last.
BEGIN;
SET LOCAL client_min_messages = warning;
LOCK TABLE fence.migration IN SHARE ROW EXCLUSIVE MODE;
SET LOCAL lock_timeout = '1s';

-- A mark outlives the rows that it guards.
CREATE TABLE IF NOT EXISTS fence.high_water (
    class text NOT NULL,
    key text NOT NULL,
    token bigint NOT NULL,
    grant_id text,
    -- The top-level transaction that admitted last, and when it began: what the triggers on guarded tables ask for. The
    -- beginning is compared too, because a restored database counts transactions from elsewhere.
    admitted_xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    admitted_at timestamptz NOT NULL DEFAULT transaction_timestamp(),
    PRIMARY KEY (class, key)
) WITH (fillfactor = 70);

-- Remembers that this transaction admitted a key. Only chooses the words of a refusal; it is no evidence. Of each class the
-- first key is kept.
CREATE OR REPLACE FUNCTION fence.note_admitted(class text, key text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    noted text := coalesce(current_setting('fence.admitted', true), '');
BEGIN
    IF position(E'\x1e' || class || E'\x1f' IN noted) = 0 THEN
        PERFORM set_config('fence.admitted', noted || E'\x1e' || class || E'\x1f' || key, true);
    END IF;
END
$$;

-- The first key of a class that this transaction admitted, for the words of a refusal; NULL when there is none.
CREATE OR REPLACE FUNCTION fence.first_admitted(class text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT substr(e.entry, length($1) + 2)
    FROM unnest(string_to_array(current_setting('fence.admitted', true), E'\x1e')) AS e (entry)
    WHERE starts_with(e.entry, $1 || E'\x1f') LIMIT 1
$$;

-- Stamps a first mark with its transaction, whoever writes it and however.
CREATE OR REPLACE FUNCTION fence.stamp_first_mark() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    NEW.admitted_xid := pg_current_xact_id();
    NEW.admitted_at := transaction_timestamp();
    PERFORM fence.note_admitted(NEW.class, NEW.key);
    RETURN NEW;
END
$$;

-- Keeps a mark from falling and stamps it with its transaction, whoever writes its token and however. It runs after the row is
-- written, and writes it once more where that is needed: a trigger that runs before would lock the row of every admission
-- first, also of those that it has nothing to do with.
CREATE OR REPLACE FUNCTION fence.stamp_mark() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    wanted fence.high_water := NEW;
BEGIN
    IF NEW.class IS DISTINCT FROM OLD.class OR NEW.key IS DISTINCT FROM OLD.key THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format('the mark of class %s, key %L, cannot become another key''s', OLD.class, OLD.key),
            HINT = 'Admit the other key: it gets a mark of its own.';
    END IF;
    wanted.admitted_xid := pg_current_xact_id();
    wanted.admitted_at := transaction_timestamp();
    IF NEW.token < OLD.token THEN
        IF fence.may_fall(NEW.class, NEW.key, NEW.token) THEN
            -- Lowering is no admission.
            wanted.admitted_xid := OLD.admitted_xid;
            wanted.admitted_at := OLD.admitted_at;
        ELSE
            RAISE WARNING USING
                MESSAGE = format('the mark of class %s, key %L, stays at %s: it never falls', OLD.class, OLD.key, OLD.token);
            wanted.token := OLD.token;
            wanted.grant_id := OLD.grant_id;
        END IF;
    END IF;
    IF wanted.token >= OLD.token THEN
        PERFORM fence.note_admitted(NEW.class, NEW.key);
    END IF;
    IF wanted.token <> NEW.token THEN
        UPDATE fence.high_water h
        SET token = wanted.token, grant_id = wanted.grant_id,
            admitted_xid = wanted.admitted_xid, admitted_at = wanted.admitted_at
        WHERE h.class = wanted.class AND h.key = wanted.key;
    ELSIF wanted.admitted_xid <> NEW.admitted_xid OR wanted.admitted_at <> NEW.admitted_at THEN
        UPDATE fence.high_water h SET admitted_xid = wanted.admitted_xid, admitted_at = wanted.admitted_at
        WHERE h.class = wanted.class AND h.key = wanted.key;
    END IF;
    RETURN NULL;
END
$$;

-- Keeps marks from being removed, but for those below their class's floor: they say nothing that the floor does not say.
CREATE OR REPLACE FUNCTION fence.keep_mark() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF TG_OP = 'DELETE' AND EXISTS (SELECT FROM fence.class c WHERE c.name = OLD.class AND OLD.token < c.floor) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
        MESSAGE = 'a mark is never removed',
        HINT = 'It outlives the rows that it guards: without it, an old token would be accepted again.';
END
$$;

DO $$
BEGIN
    PERFORM fence.keep_trigger('fence.high_water', 'stamp_first_mark',
        'BEFORE INSERT ON fence.high_water FOR EACH ROW EXECUTE FUNCTION fence.stamp_first_mark()');
    PERFORM fence.keep_trigger('fence.high_water', 'stamp_mark',
        'AFTER UPDATE OF class, key, token, grant_id ON fence.high_water FOR EACH ROW EXECUTE FUNCTION fence.stamp_mark()');
    PERFORM fence.keep_trigger('fence.high_water', 'keep_mark',
        'BEFORE DELETE ON fence.high_water FOR EACH ROW EXECUTE FUNCTION fence.keep_mark()');
    PERFORM fence.keep_trigger('fence.high_water', 'keep_marks',
        'BEFORE TRUNCATE ON fence.high_water FOR EACH STATEMENT EXECUTE FUNCTION fence.keep_mark()');
END
$$;

REVOKE ALL ON FUNCTION fence.note_admitted, fence.first_admitted, fence.stamp_first_mark, fence.stamp_mark, fence.keep_mark
    FROM PUBLIC;

INSERT INTO fence.migration (name) VALUES ('0003_mark.sql') ON CONFLICT DO NOTHING;
COMMIT;
