"""Code that runs in the scheduler process."""
