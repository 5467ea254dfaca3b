-- breaks: 1 order
-- by: S02
-- Of a batch the first key alone is decided.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.admit_many'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$batch := batch + 1;$a$, $a$batch := batch + 1;
        EXIT WHEN batch > 1;$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
