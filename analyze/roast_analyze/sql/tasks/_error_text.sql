-- Needs: _error_cause
-- Return the text of an error in one line, to be quoted: an escaped end of a line is a space, and of a request that
-- aiohttp reports, the address is left, without the headers.
CREATE MACRO _error_text(exception) AS trim(regexp_replace(
    regexp_replace(
        regexp_replace(
            _error_cause(exception), 'RequestInfo\(url=(URL\([^()]*\)).*?, real_url=URL\([^()]*\)\)(, \(\))?', '\1'
        ),
        ', headers=<CIMultiDict[^<>]*>',
        '',
        'g'
    ),
    '(^|[^\\])((\\[nrt])|\s)+',
    '\1 ',
    'g'
));
