-- Needs: _bucket_sums
-- Sums for buckets of the default length, from which two views and several figures are computed.
CREATE TABLE _bucket_totals AS FROM _bucket_sums(NULL);
