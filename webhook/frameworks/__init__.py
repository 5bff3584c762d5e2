"""Frameworks: the variables and files by which replicas find each other."""
