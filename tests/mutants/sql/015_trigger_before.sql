-- breaks: 2 real-time refusal
-- by: S02
-- The trigger fires before the row is written, and another one changes the key after it.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.attach'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$fence_enforce AFTER INSERT$a$, $a$fence_enforce BEFORE INSERT$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.guard_source'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$RETURN NULL;$a$, $a$RETURN CASE WHEN TG_OP = ''DELETE'' THEN OLD ELSE NEW END;$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
