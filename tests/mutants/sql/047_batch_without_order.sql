-- breaks: 13 bounded block
-- by: S02
-- A batch takes its keys as they are given.
DO $mutant$
DECLARE
    sound text := pg_get_functiondef('fence.admit_many'::regproc);
    broken text;
BEGIN
    broken := replace(sound, $a$FOR claim IN
        SELECT DISTINCT u.class, u.key, u.token, u.grant_id, u.class COLLATE "C" AS by_class, u.key COLLATE "C" AS by_key
        FROM unnest(classes, keys, tokens, grant_ids) AS u (class, key, token, grant_id)
        ORDER BY by_class, by_key$a$, $a$FOR claim IN
        SELECT u.class, u.key, u.token, u.grant_id
        FROM unnest(classes, keys, tokens, grant_ids) AS u (class, key, token, grant_id)$a$);
    ASSERT broken <> sound, 'what is to be broken is not there';
    sound := broken;
    EXECUTE broken;
END
$mutant$;
