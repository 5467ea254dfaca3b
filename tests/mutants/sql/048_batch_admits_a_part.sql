-- breaks: 1 order
-- by: S02
-- A batch leaves out what is stale, and admits the rest.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.admit_many'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$IF cardinality(stale) > 0 THEN$a$, $a$IF false THEN$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
