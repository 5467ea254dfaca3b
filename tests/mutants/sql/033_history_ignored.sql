-- breaks: 11 durable mark
-- by: S02
-- Nobody is told that the history is in doubt.
CREATE OR REPLACE FUNCTION fence.require_history(class text) RETURNS void
LANGUAGE sql AS 'SELECT';
