-- Needs: nothing
-- Format a number with its noun, whose plural ends in s.
CREATE MACRO _counted(number, noun) AS CASE number
    WHEN 1 THEN '1 ' || noun
    ELSE format('{:,} {}s', number, noun)
END;
