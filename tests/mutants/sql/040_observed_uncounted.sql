-- breaks: 7 identity
-- by: S02
-- What is observed is let through and not counted.
CREATE OR REPLACE FUNCTION fence.count_observed(class text, relation text, role text, application_name text, reason text,
                                                key text) RETURNS void
LANGUAGE sql AS 'SELECT';
