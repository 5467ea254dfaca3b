-- breaks: 1 order
-- by: S02
-- The column falls for whoever applies replicated changes.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.attach_column'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$PERFORM fence.fire_always(member, 'fence_column', 'zz_fence_column_move');$a$, $a$NULL;$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
