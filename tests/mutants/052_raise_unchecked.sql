-- breaks: 7 identity
-- by: S02
-- A raise keeps the greater token and refuses nothing that an admission would refuse.
CREATE OR REPLACE FUNCTION fence.raise_mark(class text, key text, token bigint, grant_id text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO fence.high_water AS mark (class, key, token, grant_id)
    VALUES (raise_mark.class, raise_mark.key, raise_mark.token, raise_mark.grant_id)
    ON CONFLICT (class, key) DO UPDATE SET token = greatest(mark.token, excluded.token),
        grant_id = CASE WHEN excluded.token >= mark.token THEN excluded.grant_id ELSE mark.grant_id END;
END
$$;
