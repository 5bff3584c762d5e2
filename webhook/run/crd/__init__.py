"""The CustomResourceDefinition runs.fairlead.dev, made from the Run's model."""

from webhook.run.crd.definition import NAME, custom_resource_definition

__all__ = ["NAME", "custom_resource_definition"]
