-- breaks: 7 identity
-- by: S02
-- A mark is lowered and nothing is written down.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.danger_lower'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$PERFORM fence.log_danger($a$, $a$PERFORM concat($a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
CREATE OR REPLACE FUNCTION fence.may_fall(class text, key text, token bigint) RETURNS boolean
LANGUAGE sql AS 'SELECT true';
