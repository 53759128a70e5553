-- The login that set the counter was told of a copy: repeated, it is told again.
ALTER TABLE devices ADD COLUMN copied boolean NOT NULL DEFAULT false;
