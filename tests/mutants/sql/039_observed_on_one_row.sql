-- breaks: 13 bounded block
-- by: S02
-- Everybody who is observed is counted on one row.
CREATE UNIQUE INDEX one_row ON fence.observation (class, relation, reason);
CREATE OR REPLACE FUNCTION fence.count_observed(class text, relation text, role text, application_name text, reason text,
                                                key text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$
    INSERT INTO fence.observation AS o (class, relation, role, application_name, reason, last_key)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (class, relation, reason) DO UPDATE SET transactions = o.transactions + 1, last_key = excluded.last_key
$$;
