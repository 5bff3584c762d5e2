"""What happens to a pod, and why: whether it is sent, what is decided, what the API server says."""
