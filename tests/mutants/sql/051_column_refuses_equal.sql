-- breaks: 5 no spurious refusal
-- by: S02
-- A holder's own token is refused on its second write.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.attach_column'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$NEW.%1$I < OLD.%1$I$a$, $a$NEW.%1$I <= OLD.%1$I$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
