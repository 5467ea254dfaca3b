-- breaks: 14 reason
-- by: S02
-- A batch says that something in it is stale, and not what.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.admit_many'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$format('presented %s, seen %s, class %s, key %L', claim.token, seen, claim.class, claim.key)$a$, $a$format('presented %s, seen %s', claim.token, seen)$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
