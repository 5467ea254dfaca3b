-- breaks: 2 real-time refusal
-- by: S02
-- A class that stands by refuses nobody.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.lets_through'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$AND NOT fence.applies_changes()$a$, $a$AND false$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
