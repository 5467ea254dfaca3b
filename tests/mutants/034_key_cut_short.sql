-- breaks: 5 no spurious refusal
-- by: S02
-- Only the first 255 characters of a key count.
CREATE OR REPLACE FUNCTION fence.admit(class text, key text, token bigint, grant_id text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    declared record;
    mark record;
BEGIN
    IF admit.token IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF002', MESSAGE = 'missing fencing token';
    END IF;
    IF admit.token < 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF003', MESSAGE = 'token below 1';
    END IF;
    SELECT c.tier INTO declared FROM fence.class c WHERE c.name = admit.class;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF007', MESSAGE = 'unknown class';
    END IF;
    IF declared.tier IS NOT NULL AND coalesce(admit.grant_id, '') = '' THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF002', MESSAGE = 'missing grant id';
    END IF;
    PERFORM fence.bound_transaction();
    PERFORM fence.take_key(admit.class, left(admit.key, 255));
    SELECT h.token, h.grant_id INTO mark FROM fence.high_water h
    WHERE h.class = admit.class AND h.key = left(admit.key, 255) FOR UPDATE;
    IF admit.token < mark.token THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF001', MESSAGE = 'stale token',
            DETAIL = format('presented %s, seen %s', admit.token, mark.token);
    END IF;
    IF declared.tier IS NOT NULL AND admit.token = mark.token AND admit.grant_id IS DISTINCT FROM mark.grant_id THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF004', MESSAGE = 'token of another grant';
    END IF;
    IF declared.tier IS NOT NULL AND (mark.token IS NULL OR admit.token > mark.token) AND NOT EXISTS (
        SELECT FROM fence.epoch_range r
        WHERE r.tier = declared.tier AND admit.token BETWEEN r.first AND r.ceiling
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF005', MESSAGE = 'token outside the registered ranges';
    END IF;
    INSERT INTO fence.high_water AS h (class, key, token, grant_id)
    VALUES (admit.class, left(admit.key, 255), admit.token, admit.grant_id)
    ON CONFLICT (class, key) DO UPDATE SET token = excluded.token, grant_id = excluded.grant_id;
END
$$;
