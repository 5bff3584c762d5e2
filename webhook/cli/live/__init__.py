"""`fairlead explain` and `fairlead mutate` for live objects."""
