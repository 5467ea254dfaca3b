-- breaks: 2 real-time refusal
-- by: S02
-- A bypass of one class is one of all.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.lets_through'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$ AND d.class = lets_through.class$a$, $a$$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
