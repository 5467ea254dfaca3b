-- breaks: 2 real-time refusal
-- by: S02
-- Tables that inherit from a guarded one are left out.
CREATE OR REPLACE FUNCTION fence.members_of(relation regclass) RETURNS regclass[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT array_agg(t.relation) FROM (SELECT $1 AS relation UNION SELECT p.relid FROM pg_partition_tree($1) p) t
$$;
