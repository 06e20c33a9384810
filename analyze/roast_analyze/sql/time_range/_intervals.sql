-- Needs: nothing
-- Clipped later, in _changes_by. The outcome is that of the whole attempt, which may fail
-- after the range.
CREATE VIEW _intervals AS FROM trace._intervals;
