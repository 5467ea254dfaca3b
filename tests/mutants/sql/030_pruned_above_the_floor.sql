-- breaks: 1 order
-- by: S02
-- Marks are pruned whatever the floor is.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.prune'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$ AND m.token < c.floor$a$, $a$$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
ALTER TABLE fence.high_water DISABLE TRIGGER keep_mark;
