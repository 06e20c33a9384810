-- Needs: nothing
-- Whether Dask writes events of this topic by itself: those of workers, nannies and clients, and of the scheduler.
CREATE MACRO _is_topic_of_dask(topic) AS
    contains(topic, '://')
    OR topic IN (
        'all', 'scheduler', 'stealing', 'missing-workers', 'worker-get-client', 'worker-restart-memory',
        'invalid-worker-transition', 'invalid-worker-task-state', 'worker-fail-hard'
    )
    OR starts_with(topic, 'Client-');
