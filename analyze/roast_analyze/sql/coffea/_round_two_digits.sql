-- Needs: nothing
-- Round a number of events to two digits: up (1), down (-1) or to the nearest (0).
CREATE MACRO _round_two_digits(n, direction) AS CASE
    WHEN n >= 1 THEN round(n / 10 ** (floor(log10(n)) - 1) + 0.4999 * direction)
        * 10 ** (floor(log10(n)) - 1)
END;
