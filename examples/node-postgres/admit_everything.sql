-- The guard, defeated: fence.admit records what the real one records, and refuses nothing. It stands outside the guard's
-- own SQL and is applied by a proof, after the guard, in the private database of a run that must show what happens without
-- a fence. Never apply it anywhere else.
CREATE OR REPLACE FUNCTION fence.admit(class text, key text, token bigint, grant_id text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO fence.high_water AS mark (class, key, token, grant_id)
    VALUES (admit.class, admit.key, greatest(admit.token, 1), admit.grant_id)
    ON CONFLICT (class, key) DO UPDATE SET
        -- A mark never falls: an older token leaves it where it is.
        token = greatest(mark.token, excluded.token),
        grant_id = CASE WHEN excluded.token >= mark.token THEN excluded.grant_id ELSE mark.grant_id END;
END
$$;
