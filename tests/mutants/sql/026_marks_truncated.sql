-- breaks: 1 order
-- by: S02
-- Whoever owns the marks' table may empty it.
ALTER TABLE fence.high_water DISABLE TRIGGER keep_marks;
