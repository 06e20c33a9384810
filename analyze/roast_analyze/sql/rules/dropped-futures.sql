-- Tasks whose futures were dropped.
-- Dask cancels a task of which the program keeps no future, unless another task needs it. Of the prefix, no task gave a
-- result.
-- Records: transition
-- Applies: EXISTS (FROM _task_runs WHERE outcome = 'cancelled')
-- Explains: cancelled attempt
-- Source: transitions that a client caused (client-releases-keys)
-- Documentation: https://distributed.dask.org/en/stable/memory.html
-- $min_keys = 2: tasks of the prefix
SELECT
    prefix AS entity,
    'high' AS confidence,
    format(
        'The program dropped the futures of {} tasks of {} before they had ended, and Dask cancelled them. No task of this'
        ' prefix gave a result.', cancelled_keys, prefix
    ) AS sentence,
    seconds AS core_seconds,
    NULL::DOUBLE AS wall_seconds_min,
    NULL::DOUBLE AS wall_seconds_max,
    'Keep the futures until the tasks have ended, such as in a list, or use fire_and_forget(future) if only the effect of'
    ' the tasks matters.' AS change,
    format(
        'SELECT key, outcome, processing_t, end_t, worker FROM task_runs WHERE prefix = ''{}'' ORDER BY processing_t',
        replace(prefix, '''', '''''')
    ) AS evidence,
    trace_id
FROM _cancelled_prefixes
WHERE NOT is_asked AND kept_keys = 0 AND cancelled_keys >= $min_keys
QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY cancelled_keys DESC, prefix) = 1;
