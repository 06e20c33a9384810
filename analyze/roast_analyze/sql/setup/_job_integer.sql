-- Needs: nothing
-- Return the first variable that begins with an integer: 8 of "8(x2)", 8 cores on two nodes each.
CREATE MACRO _job_integer(variables, names) AS
    list_filter(
        list_transform(
            names,
            lambda name: try_cast(
                regexp_extract(trim(variables ->> name), '^\d{1,15}') AS BIGINT
            )
        ),
        lambda number: number IS NOT NULL
    )[1];
