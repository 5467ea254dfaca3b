-- breaks: 2 real-time refusal
-- by: S02
-- A row without a key is nobody's, and let in.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.asking'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$IF NOT FOUND THEN$a$, $a$IF NOT FOUND AND written IS NOT NULL THEN$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
