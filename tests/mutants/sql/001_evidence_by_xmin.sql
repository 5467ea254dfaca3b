-- breaks: 5 no spurious refusal
-- by: S02
-- The evidence is the row's own xmin, which is another one in a savepoint.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.asking'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$h.admitted_xid = pg_current_xact_id() AND h.admitted_at = transaction_timestamp()$a$, $a$h.xmin = pg_current_xact_id()::xid$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
