"""What is reported of policies and classes in a cluster: their statuses, as values."""
