-- breaks: 1 order
-- by: S02
-- A row that moves to another partition may take an older token along.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.attach_column'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$zz_fence_column_move BEFORE UPDATE ON %s
                            FOR EACH ROW WHEN (%s)$a$, $a$zz_fence_column_move BEFORE UPDATE ON %s
                            FOR EACH ROW WHEN (false AND (%s))$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
