-- Needs: nothing
-- Logarithm of the number of ways to choose some of several.
CREATE MACRO _log_choices(number, chosen) AS
lgamma(number + 1.0) - lgamma(chosen + 1.0) - lgamma(number - chosen + 1.0);

-- Return the probability that at least `found` of the `failed` among all `tries` are among the `tries_there`, if each
-- of the tries is as likely to fail: the upper tail of the hypergeometric distribution.
CREATE MACRO _hypergeometric_tail(found, tries, failed, tries_there) AS list_sum(list_transform(
    range(
        greatest(found, failed + tries_there - tries)::BIGINT,
        least(failed, tries_there)::BIGINT + 1
    ),
    lambda n: exp(
        _log_choices(tries_there, n) + _log_choices(tries - tries_there, failed - n) - _log_choices(tries, failed)
    )
));
