-- breaks: 2 real-time refusal
-- by: S02
-- The trigger of TRUNCATE compares OLD, which is NULL there, and falls open.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.refuse_truncate'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$RAISE EXCEPTION USING$a$, $a$IF OLD IS NULL THEN RETURN NULL; END IF;
    RAISE EXCEPTION USING$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
