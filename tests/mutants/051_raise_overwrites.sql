-- breaks: 1 order
-- by: S02
-- A raise puts its token into the mark, whatever is there.
CREATE OR REPLACE FUNCTION fence.raise_mark(class text, key text, token bigint, grant_id text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO fence.high_water AS mark (class, key, token, grant_id)
    VALUES (raise_mark.class, raise_mark.key, raise_mark.token, raise_mark.grant_id)
    ON CONFLICT (class, key) DO UPDATE SET token = excluded.token, grant_id = excluded.grant_id;
END
$$;
