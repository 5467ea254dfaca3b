-- breaks: 2 real-time refusal
-- by: S17
-- Only the last two holders of a key are remembered: a token older than both counts as unknown, and is let in.
ALTER TABLE fence.high_water ADD COLUMN previous bigint;
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
    SELECT h.token, h.previous INTO mark FROM fence.high_water h
    WHERE h.class = admit.class AND h.key = admit.key FOR UPDATE;
    IF admit.token >= 1 AND admit.token < mark.previous THEN
        UPDATE fence.high_water h SET token = h.token WHERE h.class = admit.class AND h.key = admit.key;
        RETURN;
    END IF;
    PERFORM fence.admit_soundly(admit.class, admit.key, admit.token, admit.grant_id);
    UPDATE fence.high_water h SET previous = mark.token
    WHERE h.class = admit.class AND h.key = admit.key AND h.token > mark.token;
END
$$;
