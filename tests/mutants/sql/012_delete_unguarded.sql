-- breaks: 2 real-time refusal
-- by: S02
-- Rows that are deleted are not asked about.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.guard_source'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$IF TG_OP = ''DELETE'' OR TG_OP$a$, $a$IF false OR TG_OP$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
