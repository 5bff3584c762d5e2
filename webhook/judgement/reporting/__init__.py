"""The statuses of policies and classes in a cluster, as values."""
