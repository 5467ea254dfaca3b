-- breaks: 2 real-time refusal
-- by: S02
-- TRUNCATE has its trigger on the whole table alone.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.attach'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$EXECUTE format('CREATE OR REPLACE TRIGGER fence_truncate$a$, $a$PERFORM fence.fire_always(member, 'fence_enforce');
        CONTINUE WHEN member <> guarded;
        EXECUTE format('CREATE OR REPLACE TRIGGER fence_truncate$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
