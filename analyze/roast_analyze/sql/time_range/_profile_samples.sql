-- Needs: _counted_stacks
-- Computed when a query reads it.
CREATE VIEW _profile_samples AS FROM _counted_stacks;
