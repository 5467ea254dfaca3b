-- breaks: 11 durable mark
-- by: S02
-- A stop is written down, and whoever was found sound before goes on.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.stop'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$UPDATE fence.class c SET sound_start = NULL WHERE c.sound_start IS NOT NULL;$a$, $a$$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
