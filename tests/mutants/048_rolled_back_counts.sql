-- breaks: 5 no spurious refusal
-- by: S03
-- In classes of a tier the mark is kept in a sequence as well, which no rollback brings back.
DO $$ BEGIN
    FOR n IN 0..255 LOOP
        EXECUTE format('CREATE SEQUENCE fence.seen_%s', n);
    END LOOP;
END $$;
DO $do$ BEGIN
    EXECUTE replace(replace(pg_get_functiondef('fence.admit'::regproc), 'admit.', 'admit_soundly.'),
                    'FUNCTION fence.admit(', 'FUNCTION fence.admit_soundly(');
END $do$;
CREATE OR REPLACE FUNCTION fence.admit(class text, key text, token bigint, grant_id text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    name text := format('fence.seen_%s', hashtext(admit.class || ' ' || admit.key) & 255);
    seen bigint;
    tiered boolean := EXISTS (SELECT FROM fence.class c WHERE c.name = admit.class AND c.tier IS NOT NULL);
BEGIN
    IF tiered AND admit.token IS NOT NULL THEN
        EXECUTE format('SELECT last_value FROM %s', name) INTO seen;
        IF admit.token > 0 AND coalesce(admit.grant_id, '') <> '' AND admit.token < seen THEN
            RAISE EXCEPTION USING ERRCODE = 'ZF001', MESSAGE = 'stale token',
                DETAIL = format('presented %s, seen %s', admit.token, seen);
        END IF;
    END IF;
    PERFORM fence.admit_soundly(admit.class, admit.key, admit.token, admit.grant_id);
    IF tiered THEN
        PERFORM setval(name::regclass, admit.token) WHERE admit.token > seen;
    END IF;
END
$$;
