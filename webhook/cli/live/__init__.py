"""`fairlead explain` and `fairlead mutate` of objects that a cluster has."""
