"""The CustomResourceDefinitions of policies, classes, exceptions and sources."""

from webhook.policy.crd.definitions import RESOURCES, custom_resource_definitions

__all__ = ["RESOURCES", "custom_resource_definitions"]
