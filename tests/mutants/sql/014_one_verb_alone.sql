-- breaks: 2 real-time refusal
-- by: S02
-- The trigger fires for UPDATE alone.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.attach'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$fence_enforce AFTER INSERT OR UPDATE OR DELETE ON$a$, $a$fence_enforce AFTER UPDATE ON$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
