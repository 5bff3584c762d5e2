"""Check pod templates against the pod schema of the newest supported Kubernetes."""
