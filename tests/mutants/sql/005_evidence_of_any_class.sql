-- breaks: 2 real-time refusal
-- by: S02
-- Two classes share their admissions.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.asking'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$h.class = %1$L AND$a$, $a$%1$L IS NOT NULL AND$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
