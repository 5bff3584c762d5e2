"""A real Kubernetes control plane on this machine, built from pinned Go modules."""
