-- breaks: 2 real-time refusal
-- by: S02
-- The evidence is a setting of the session: it outlives its transaction.
DO $mutant$
BEGIN
    EXECUTE replace(replace(pg_get_functiondef('fence.admit'::regproc), 'admit.', 'admit_soundly.'),
                    'FUNCTION fence.admit(', 'FUNCTION fence.admit_soundly(');
END
$mutant$;
CREATE OR REPLACE FUNCTION fence.admit(class text, key text, token bigint, grant_id text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM fence.admit_soundly($1, $2, $3, $4);
    PERFORM set_config('fence.evidence', concat(current_setting('fence.evidence', true), E'\x1e', $1, E'\x1f', $2, E'\x1e'), false);
END
$$;
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.asking'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$WHERE h.class = %1$L AND h.key = written
          AND h.admitted_xid = pg_current_xact_id() AND h.admitted_at = transaction_timestamp()$a$, $a$WHERE h.class = %1$L AND h.key = written
          AND position(E'\x1e' || h.class || E'\x1f' || h.key || E'\x1e' IN current_setting('fence.evidence', true)) > 0$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
