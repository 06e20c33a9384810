-- Needs: nothing
-- Prefixes of the tasks that Dask makes for shuffles, joins and rechunking: they exchange all data, so
-- that they cannot be merged in a tree or split on their own. Tasks that Dask fuses have both names.
CREATE MACRO _is_shuffle(prefix) AS
coalesce(
    regexp_matches(
        prefix,
        '^((split|group|simple)-)?(task|disk|p2p)?shuffle(-(transfer|barrier|p2p|split|getitem|collect|partition|group))?$'
        '|^(split|group)-shuffle$|^hash-?join(-?(p2p|transfer))?$|^rechunk(-(merge|split|transfer|p2p|rechunk))*$|^(barrier|zpartd)$'
    ),
    false
);
