-- breaks: 1 order
-- by: S02
-- A fall of the column is told, and written.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.refuse_fall'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$RAISE EXCEPTION USING ERRCODE = 'ZF001'$a$, $a$RETURN NEW;
    RAISE EXCEPTION USING ERRCODE = 'ZF001'$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
