-- breaks: 2 real-time refusal
-- by: S02
-- The triggers stand on the partitions that there are, and not on the table that later ones take them from.
DO $mutant$
BEGIN
    EXECUTE replace(pg_get_functiondef('fence.attach'::regproc), 'FUNCTION fence.attach(', 'FUNCTION fence.attach_soundly(');
END
$mutant$;
CREATE OR REPLACE FUNCTION fence.attach(guarded regclass, class text, key_columns name[], mode fence.mode) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    leaf regclass;
BEGIN
    PERFORM fence.attach_soundly($1, $2, $3, $4);
    IF (SELECT c.relkind <> 'p' FROM pg_class c WHERE c.oid = $1) THEN
        RETURN;
    END IF;
    EXECUTE format('DROP TRIGGER fence_enforce ON %s', $1);
    FOR leaf IN SELECT t.relid FROM pg_partition_tree($1) t WHERE t.isleaf LOOP
        EXECUTE format('CREATE TRIGGER fence_enforce AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW EXECUTE FUNCTION %s(%L, %L)',
                       leaf, fence.guard_function($2, $3), $2, $3[1]);
        PERFORM fence.fire_always(leaf, 'fence_enforce');
    END LOOP;
END
$$;
