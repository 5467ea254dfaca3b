-- breaks: 2 real-time refusal
-- by: S02
-- The triggers do not fire for whoever applies replicated changes.
CREATE OR REPLACE FUNCTION fence.fire_always(relation regclass, VARIADIC triggers text[]) RETURNS void
LANGUAGE sql AS 'SELECT';
