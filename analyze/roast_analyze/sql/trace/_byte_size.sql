-- Needs: nothing
-- Format a number of bytes in powers of 1024 with three significant digits, as the report does.
CREATE MACRO _byte_size(nbytes) AS
    list_transform(
        list_transform(
            [least(floor(log2(greatest(nbytes, 1)) / 10), 5)],
            lambda power: {
                'amount': nbytes / 1024 ** power,
                'unit': ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'][power::BIGINT + 1]
            }
        ),
        lambda size: regexp_replace(
            format('{:,}', round(size.amount, greatest(2 - floor(log10(greatest(size.amount, 1))), 0)::INTEGER)),
            '\.0$',
            ''
        ) || ' ' || size.unit
    )[1];
