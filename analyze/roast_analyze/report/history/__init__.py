"""The page of a store: its runs over time, what changed, and what is slow in run after run."""
