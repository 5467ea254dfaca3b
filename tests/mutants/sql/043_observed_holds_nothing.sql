-- breaks: 3 delayed packet
-- by: S02
-- A write that was let through does not hold the switch up.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.lets_through'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$PERFORM pg_advisory_xact_lock_shared(fence.mode_lock(lets_through.class));$a$, $a$$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
