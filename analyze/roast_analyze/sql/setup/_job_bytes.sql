-- Needs: nothing
-- Return the first variable that is a size, in bytes: 2^34 of "16Gi", "16 GB" and "16g".
CREATE MACRO _job_bytes(variables, names) AS
    list_filter(
        list_transform(
            list_transform(
                names,
                lambda name: regexp_extract(
                    trim(variables ->> name),
                    '^(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)i?[bB]?$',
                    ['number', 'unit']
                )
            ),
            -- A number near 2^64 means that there is no limit.
            lambda size: try_cast(
                try_cast(size.number AS DOUBLE)
                * pow(1024, coalesce(strpos('kmgt', nullif(lower(size.unit), '')), 0))
                AS BIGINT
            )
        ),
        lambda nbytes: nbytes IS NOT NULL
    )[1];
