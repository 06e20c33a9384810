-- Cancelled tasks.
-- Dask does not interrupt an attempt that computes, so that it goes on and occupies its thread. Prefixes without any
-- result, of whose tasks the program dropped the futures, have a rule of their own (dropped-futures).
-- Records: transition
-- Applies: EXISTS (FROM _task_runs WHERE outcome = 'cancelled')
-- Explains: cancelled attempt
-- Source: transitions that a client caused (client-releases-keys, cancel-key)
-- Documentation: https://distributed.dask.org/en/stable/memory.html
-- $min_seconds = 1: core time of cancelled attempts
SELECT
    prefix AS entity,
    'high' AS confidence,
    concat(
        if(is_asked, 'The client cancelled ', 'The program dropped the futures of '),
        if(cancelled_keys = 1, 'a task', cancelled_keys || ' tasks'),
        format(' of {} before {} ended.', prefix, if(cancelled_keys = 1, 'it had', 'they had')),
        CASE
            WHEN kept_keys = 0 THEN ' No task of this prefix gave a result.'
            WHEN repeated_keys > 0 THEN format(' Submitted again, {} of them gave results.', repeated_keys)
        END,
        format(
            ' An attempt that computes is not interrupted: cancelled attempts occupied threads for {:.1f} core-seconds{}.',
            seconds, coalesce(format(', {:.1f} of them after the first was cancelled', seconds_after), '')
        )
    ) AS sentence,
    seconds AS core_seconds,
    NULL::DOUBLE AS wall_seconds_min,
    NULL::DOUBLE AS wall_seconds_max,
    'Let tasks end early by themselves, such as by reading a distributed.Event or Variable in a loop, or let them take'
    ' less time. Cancelling before they begin costs nothing.' AS change,
    format(
        'SELECT key, outcome, processing_t, end_t, worker FROM task_runs WHERE prefix = ''{}'' AND outcome = ''cancelled'''
        ' ORDER BY processing_t', replace(prefix, '''', '''''')
    ) AS evidence,
    trace_id
FROM _cancelled_prefixes
WHERE seconds >= $min_seconds AND (is_asked OR kept_keys > 0)
-- The prefixes of one program are often cancelled together.
QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY seconds DESC, prefix) = 1;
