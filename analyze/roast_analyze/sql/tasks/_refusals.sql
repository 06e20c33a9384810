-- Needs: _is_given_up, _task_runs, _tasks
-- Tasks that the scheduler failed without an attempt. One row per error. It refuses a task whose inputs exceed the
-- memory limit of the worker, and one that no worker could run for longer than no-workers-timeout. These
-- transitions have an error of their own, without a traceback; those of tasks that depend on a failed one have none.
CREATE TABLE _refusals AS
SELECT
    transition.t,
    transition.key,
    task.prefix,
    transition.worker,
    transition.exception,
    nullif(regexp_extract(transition.exception, 'has ([\d.]+ \w+) worth of input', 1), '') AS input_size,
    nullif(regexp_extract(transition.exception, 'has memory_limit set to ([\d.]+ \w+)', 1), '') AS limit_size,
    len(list_distinct(task.dependencies)) AS inputs,
    transition.trace_id
FROM raw.transition AS transition
-- Lost records are no refusals: a worker reports an error with a traceback.
ANTI JOIN _task_runs AS run ON transition.rowid = run.end_seq
LEFT JOIN _tasks AS task USING (trace_id, key)
WHERE transition.finish = 'erred'
    AND transition.exception IS NOT NULL
    AND transition.traceback IS NULL
    AND transition.thread IS NULL
    AND coalesce(transition.cause, transition.key) = transition.key
    AND NOT _is_given_up(transition.exception);
