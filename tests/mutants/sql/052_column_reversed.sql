-- breaks: 1 order
-- by: S02
-- The column may fall, and may not rise.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.attach_column'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$NEW.%1$I < OLD.%1$I$a$, $a$NEW.%1$I > OLD.%1$I$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
