-- breaks: 2 real-time refusal
-- by: S02
-- Whoever admitted the key, and whenever, is enough.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.asking'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$AND h.admitted_xid = pg_current_xact_id() AND h.admitted_at = transaction_timestamp()$a$, $a$$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
