-- Needs: nothing
-- Lists that processes share, without duplicates: section is packages, configuration,
-- config_sources or defaults.
CREATE VIEW _sheets AS
SELECT trace_id, section, name, min_by(value, rowid) AS value
FROM raw.environment
WHERE section IN ('packages', 'configuration', 'config_sources', 'defaults')
GROUP BY trace_id, section, name;
