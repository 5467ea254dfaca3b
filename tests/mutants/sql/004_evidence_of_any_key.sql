-- breaks: 2 real-time refusal
-- by: S02
-- An admission of any key of the class is enough.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.asking'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$h.key = written$a$, $a$written IS NOT NULL$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
