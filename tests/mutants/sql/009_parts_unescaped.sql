-- breaks: 5 no spurious refusal
-- by: S02
-- The parts of a key are joined as they are.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.key_expression'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$replace(replace(%s.%I::text, E'\\', E'\\\\'), '/', E'\\/')$a$, $a$%s.%I::text$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
