-- breaks: 2 real-time refusal
-- by: S02
-- The switch to enforcement waits, and switches nothing.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.tighten'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$AND c.mode < tighten.mode$a$, $a$AND c.mode > tighten.mode$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
