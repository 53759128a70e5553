-- Housekeeping drops the dedupe rows of trimmed entries by their key, without an index
-- of seen by seq that each append would have to write.
ALTER TABLE log ADD COLUMN key bytea; -- as in seen; NULL = a marker, or from before this column
