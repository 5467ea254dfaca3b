-- breaks: 14 reason
-- by: S02
-- An admission of another key is told as if there were none.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.unadmitted'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$WHEN first_key IS NOT NULL THEN 'wrong key'$a$, $a$WHEN false THEN 'wrong key'$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
