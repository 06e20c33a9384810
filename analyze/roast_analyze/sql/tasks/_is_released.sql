-- Needs: nothing
-- Return whether the scheduler dropped an attempt, so that its worker reports no phases of it.
CREATE MACRO _is_released(outcome) AS outcome IN ('rescheduled', 'cancelled');
