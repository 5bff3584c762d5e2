"""The CustomResourceDefinitions of policies, classes and exceptions, made from their models."""

from webhook.policy.crd.definitions import RESOURCES, custom_resource_definitions

__all__ = ["RESOURCES", "custom_resource_definitions"]
