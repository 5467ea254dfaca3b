-- breaks: 5 no spurious refusal
-- by: S02
-- Only the admission that made the mark is evidence.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.admit'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$SET admitted_xid = pg_current_xact_id(), admitted_at = transaction_timestamp()$a$, $a$SET token = h.token$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.decide'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$admitted_xid = pg_current_xact_id(), admitted_at = transaction_timestamp()$a$, $a$admitted_xid = h.admitted_xid, admitted_at = h.admitted_at$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
ALTER TABLE fence.high_water DISABLE TRIGGER stamp_mark;
