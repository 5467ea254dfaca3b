-- breaks: 2 real-time refusal
-- by: S02
-- Keys that differ in their letters' case alone are one.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.asking'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$h.key = written$a$, $a$lower(h.key) = lower(written)$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
