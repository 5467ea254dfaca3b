-- breaks: 7 identity
-- by: S02
-- A bypass is a setting of the transaction, and is written down nowhere.
CREATE OR REPLACE FUNCTION fence.danger_bypass(class text, reason text) RETURNS void
LANGUAGE sql AS $$ SELECT set_config('fence.bypass', $1, true) $$;
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.lets_through'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$IF EXISTS (SELECT FROM fence.danger_log$a$, $a$IF current_setting('fence.bypass', true) = lets_through.class OR EXISTS (SELECT FROM fence.danger_log$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
