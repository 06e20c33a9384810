-- Needs: nothing
-- Power of two by which to widen time buckets so that there are at most about `pairs` pairs of a
-- bucket and a worker, but at least `fewest` buckets. greatest() ignores the null of a trace
-- without workers.
CREATE MACRO _widening(buckets, workers, pairs, fewest) AS
    2 ** greatest(0, least(ceil(log2(buckets * workers / pairs)), floor(log2(buckets / fewest))));
