-- breaks: 3 delayed packet
-- by: S02
-- The switch to enforcement overtakes a late write that was let through and is not yet committed.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.tighten'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$PERFORM pg_advisory_xact_lock(its_lock)$a$, $a$PERFORM pg_try_advisory_xact_lock(its_lock)$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
