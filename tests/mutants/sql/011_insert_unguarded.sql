-- breaks: 2 real-time refusal
-- by: S02
-- Rows that are inserted are not asked about.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.guard_source'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$IF TG_OP <> ''DELETE'' THEN$a$, $a$IF TG_OP = ''UPDATE'' THEN$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
