-- breaks: 1 order
-- by: S02
-- The floor is written down and not asked about.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.decide'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$decide.token < mark_token OR decide.token < declared.floor$a$, $a$decide.token < mark_token$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
