-- breaks: 2 real-time refusal
-- by: S02
-- A line in the log lets every later transaction through.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.lets_through'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$d.xid = pg_current_xact_id() AND d.at = transaction_timestamp()
                 AND $a$, $a$$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
