-- breaks: 14 reason
-- by: S02
-- The two numbers of a stale token stand in each other's place.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.explain_column'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$format('presented %s, seen %s', presented, seen)$a$, $a$format('presented %s, seen %s', seen, presented)$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
