"""The CustomResourceDefinitions of policies, classes, exceptions and sources."""
