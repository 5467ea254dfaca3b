-- The marks: the largest token accepted for each key, and which transaction admitted last.
BEGIN;
SET LOCAL client_min_messages = warning;
LOCK TABLE fence.migration IN SHARE ROW EXCLUSIVE MODE;

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

-- Stamps every write of a mark with its transaction, and keeps the mark from falling, whoever writes it and however.
CREATE OR REPLACE FUNCTION fence.stamp_mark() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    admitted text := coalesce(current_setting('fence.admitted_classes', true), '');
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.class IS DISTINCT FROM OLD.class OR NEW.key IS DISTINCT FROM OLD.key THEN
            RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
                MESSAGE = format('the mark of class %s, key %L, cannot become another key''s', OLD.class, OLD.key),
                HINT = 'Admit the other key: it gets a mark of its own.';
        END IF;
        IF NEW.token < OLD.token THEN
            RAISE WARNING USING
                MESSAGE = format('the mark of class %s, key %L, stays at %s: it never falls', OLD.class, OLD.key, OLD.token);
            NEW.token := OLD.token;
            NEW.grant_id := OLD.grant_id;
        END IF;
    END IF;
    NEW.admitted_xid := pg_current_xact_id();
    NEW.admitted_at := transaction_timestamp();
    -- Only chooses the words of a refusal; it is no evidence. Of each class the first key is kept.
    IF NOT NEW.class = ANY (string_to_array(admitted, ' ')) THEN
        PERFORM set_config('fence.admitted_classes', ltrim(admitted || ' ' || NEW.class), true),
            set_config('fence.admitted_keys', concat_ws(' ', nullif(current_setting('fence.admitted_keys', true), ''),
                       NEW.class || ':' || encode(convert_to(NEW.key, 'UTF8'), 'hex')), true);
    END IF;
    RETURN NEW;
END
$$;

CREATE OR REPLACE FUNCTION fence.keep_mark() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
        MESSAGE = 'a mark is never removed',
        HINT = 'It outlives the rows that it guards: without it, an old token would be accepted again.';
END
$$;

CREATE OR REPLACE TRIGGER stamp_mark BEFORE INSERT OR UPDATE ON fence.high_water
    FOR EACH ROW EXECUTE FUNCTION fence.stamp_mark();
CREATE OR REPLACE TRIGGER keep_mark BEFORE DELETE OR TRUNCATE ON fence.high_water
    FOR EACH STATEMENT EXECUTE FUNCTION fence.keep_mark();
ALTER TABLE fence.high_water ENABLE ALWAYS TRIGGER stamp_mark;
ALTER TABLE fence.high_water ENABLE ALWAYS TRIGGER keep_mark;

REVOKE ALL ON FUNCTION fence.stamp_mark, fence.keep_mark FROM PUBLIC;

INSERT INTO fence.migration (name) VALUES ('0003_mark.sql') ON CONFLICT DO NOTHING;
COMMIT;
