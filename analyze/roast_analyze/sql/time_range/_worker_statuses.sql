-- Needs: nothing
-- Clipped later, in core_time.
CREATE VIEW _worker_statuses AS FROM trace._worker_statuses;
