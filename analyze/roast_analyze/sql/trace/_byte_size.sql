-- Needs: nothing
-- Format a number of bytes in powers of 1024 with three significant digits, as the report does.
CREATE MACRO _size_power(nbytes) AS least(floor(log2(greatest(nbytes, 1)) / 10), 5)::INTEGER;

CREATE MACRO _three_digits(amount) AS regexp_replace(
    format('{:,}', round(amount, greatest(2 - floor(log10(greatest(amount, 0.001))), 0)::INTEGER)), '\.0$', ''
);

CREATE MACRO _byte_size(nbytes) AS
    _three_digits(nbytes / 1024 ** _size_power(nbytes))
    || ' ' || ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'][_size_power(nbytes) + 1];
