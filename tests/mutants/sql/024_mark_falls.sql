-- breaks: 1 order
-- Whoever may write the marks' table may lower a mark, without a line in the log.
ALTER TABLE fence.high_water DISABLE TRIGGER stamp_mark;
