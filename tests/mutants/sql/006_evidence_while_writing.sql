-- breaks: 2 real-time refusal
-- by: S02
-- An admission inside the writing statement counts, with the snapshot from before its wait.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.guard_function'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path$a$, $a$LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
