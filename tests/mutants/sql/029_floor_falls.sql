-- breaks: 1 order
-- by: S02
-- A floor may be lowered.
ALTER TABLE fence.class DISABLE TRIGGER keep_floor;
