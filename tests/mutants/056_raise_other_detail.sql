-- breaks: 14 reason
-- by: S02
-- A stale raise names the mark in its DETAIL and not what was presented.
CREATE OR REPLACE FUNCTION fence.raise_mark(class text, key text, token bigint, grant_id text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    PERFORM fence.admit(raise_mark.class, raise_mark.key, raise_mark.token, raise_mark.grant_id);
EXCEPTION WHEN SQLSTATE 'ZF001' THEN
    RAISE EXCEPTION USING ERRCODE = 'ZF001', MESSAGE = 'stale token', DETAIL = 'a newer mark was seen';
END
$$;
