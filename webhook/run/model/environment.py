"""The environment: the placement that a Run asks for itself, layer by layer."""

from webhook.placement.schema.placement import PlacementModel


class Environment(PlacementModel):
    """The placement that a run, a role or a single replica asks for itself."""
