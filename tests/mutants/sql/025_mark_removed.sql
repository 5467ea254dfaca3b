-- breaks: 1 order
-- by: S02
-- Whoever may write the marks' table may remove a mark.
ALTER TABLE fence.high_water DISABLE TRIGGER keep_mark;
