-- breaks: 1 order
-- by: S02
-- One line in the log lets a mark fall as far as anybody likes, in any transaction.
CREATE OR REPLACE FUNCTION fence.may_fall(class text, key text, token bigint) RETURNS boolean
LANGUAGE sql AS 'SELECT true';
