"""The CustomResourceDefinitions of policies, classes and exceptions."""

from webhook.policy.crd.definitions import RESOURCES, custom_resource_definitions

__all__ = ["RESOURCES", "custom_resource_definitions"]
