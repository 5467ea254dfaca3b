-- breaks: 7 identity
-- by: S02
-- A raise from outside the registered ranges is answered as if it had raised the mark.
CREATE OR REPLACE FUNCTION fence.raise_mark(class text, key text, token bigint, grant_id text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    PERFORM fence.admit(raise_mark.class, raise_mark.key, raise_mark.token, raise_mark.grant_id);
EXCEPTION WHEN SQLSTATE 'ZF005' THEN
    NULL;
END
$$;
