-- breaks: 5 no spurious refusal
-- by: S02
-- A class that only observes refuses.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.lets_through'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$IF mode = 'observe' THEN$a$, $a$IF mode = 'observe' THEN
        RETURN false;$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
