-- breaks: 5 no spurious refusal
-- by: S18
-- The guard has a clock of its own: a grant whose last admission is 0.7 s ago is refused as stale, though nobody newer came.
ALTER TABLE fence.high_water ADD COLUMN touched timestamptz NOT NULL DEFAULT clock_timestamp();
DO $do$ BEGIN
    EXECUTE replace(replace(pg_get_functiondef('fence.admit'::regproc), 'admit.', 'admit_soundly.'),
                    'FUNCTION fence.admit(', 'FUNCTION fence.admit_soundly(');
END $do$;
CREATE OR REPLACE FUNCTION fence.admit(class text, key text, token bigint, grant_id text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    mark record;
BEGIN
    SELECT h.token, h.grant_id, h.touched INTO mark FROM fence.high_water h
    WHERE h.class = admit.class AND h.key = admit.key FOR UPDATE;
    IF admit.token = mark.token AND admit.grant_id = mark.grant_id
        AND clock_timestamp() - mark.touched > interval '0.7 s' THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF001', MESSAGE = 'stale token',
            DETAIL = format('presented %s, seen %s', admit.token, mark.token);
    END IF;
    PERFORM fence.admit_soundly(admit.class, admit.key, admit.token, admit.grant_id);
    UPDATE fence.high_water h SET touched = clock_timestamp()
    WHERE h.class = admit.class AND h.key = admit.key;
END
$$;
