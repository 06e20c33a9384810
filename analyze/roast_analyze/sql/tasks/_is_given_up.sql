-- Needs: nothing
-- Whether an attempt failed because Dask gave up its task, whose workers were lost each time.
CREATE MACRO _is_given_up(exception) AS coalesce(starts_with(exception, 'KilledWorker'), false);
