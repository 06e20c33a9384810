"""Code that runs in worker processes."""
