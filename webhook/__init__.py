"""Fairlead: the program that places machine-learning runs on Kubernetes."""

__version__ = "0.1.0"
