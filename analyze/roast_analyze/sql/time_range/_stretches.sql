-- Needs: nothing
-- What begins or ends outside is cut off where it is counted (_amounts). What came to nothing
-- is known of the whole: an attempt that goes on may fail after the excerpt.
CREATE VIEW _stretches AS FROM trace._stretches;
