"""Workloads: from any object to the pods that its controller makes."""
