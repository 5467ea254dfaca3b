-- breaks: 2 real-time refusal
-- by: S02
-- What is not admitted is told, and written.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.unadmitted'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$RAISE EXCEPTION USING ERRCODE$a$, $a$RAISE NOTICE USING ERRCODE$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
