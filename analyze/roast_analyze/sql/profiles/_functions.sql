-- Needs: nothing
-- Functions measured by a tracing profiler, with their numbers as columns.
CREATE VIEW _functions AS
SELECT
    record.rowid AS function,
    record.name,
    record.filename,
    record.name || ' (' || coalesce(record.filename, '?')
        || coalesce(':' || numbers.line_number, '') || ')' AS label,
    numbers.*,
    facts.worker,
    facts.value ->> '$.clock' AS clock,
    facts.filename AS log,
    record.source,
    record.trace_id
FROM (
    SELECT
        rowid,
        *,
        try_cast(value AS STRUCT(
            "index" BIGINT, line_number BIGINT, builtin BOOLEAN, code_flags BIGINT, calls BIGINT, actual_calls BIGINT,
            self_seconds DOUBLE, total_seconds DOUBLE, thread BIGINT, thread_name VARCHAR,
            tag BIGINT,
            callees STRUCT(
                "index" BIGINT, calls BIGINT, actual_calls BIGINT, self_seconds DOUBLE,
                total_seconds DOUBLE
            )[]
        )) AS numbers
    FROM raw.function
) AS record
LEFT JOIN raw.import AS facts USING (trace_id, source);
