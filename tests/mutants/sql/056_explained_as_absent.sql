-- breaks: 1 order
-- by: S02
-- A row that was not written because its token is newer is told as one that is not there.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.explain_column'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$IF presented < seen THEN$a$, $a$IF false THEN$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
