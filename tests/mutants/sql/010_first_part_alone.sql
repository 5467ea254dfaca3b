-- breaks: 5 no spurious refusal
-- by: S02
-- Of a key of several columns the first alone counts.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.guard_source'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$fence.key_expression('OLD', key_columns)$a$, $a$fence.key_expression('OLD', key_columns[1:1])$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    broken := replace(sound, $a$fence.key_expression('NEW', key_columns)$a$, $a$fence.key_expression('NEW', key_columns[1:1])$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
