-- Needs: _bucket_sums, _bucket_totals
-- Sums for buckets of any length; null is the default length.
CREATE MACRO _process_buckets(bucket_seconds) AS TABLE
FROM _bucket_totals
WHERE bucket_seconds IS NULL
UNION ALL
FROM _bucket_sums(bucket_seconds)
WHERE bucket_seconds IS NOT NULL;
