"""The decision on one pod: pure, from a pod and a policy set."""
