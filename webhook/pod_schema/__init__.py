"""Pod templates held against the pod schema of the newest Kubernetes that Fairlead supports."""
