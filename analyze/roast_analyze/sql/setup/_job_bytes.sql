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
            lambda size: (
                try_cast(size.number AS DOUBLE)
                * pow(1024, coalesce(strpos('kmgt', nullif(lower(size.unit), '')), 0))
            )::BIGINT
        ),
        lambda nbytes: nbytes IS NOT NULL
    )[1];
