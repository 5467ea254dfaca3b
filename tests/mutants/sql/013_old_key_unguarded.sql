-- breaks: 2 real-time refusal
-- by: S02
-- A row that moves away from its key is asked about at its new one alone.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.guard_source'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$OR TG_OP = ''UPDATE'' AND$a$, $a$OR false AND$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
