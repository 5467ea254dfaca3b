-- breaks: 1 order
-- by: S02
-- Whoever may write the marks' table may lower a mark, without a line in the log.
ALTER TABLE fence.high_water DISABLE TRIGGER stamp_mark;
