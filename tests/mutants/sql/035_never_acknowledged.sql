-- breaks: 5 no spurious refusal
-- by: S02
-- An acknowledgement is written down, and admissions stay stopped.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.acknowledge'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$stopped = NULL, stopped_at = NULL$a$, $a$stopped = h.stopped, stopped_at = h.stopped_at$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
