-- breaks: 5 no spurious refusal
-- by: S02
-- The holder's own token is told as stale.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.explain_column'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$IF presented < seen THEN$a$, $a$IF presented <= seen THEN$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
