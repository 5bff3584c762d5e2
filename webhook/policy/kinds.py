"""The kinds of documents that make a policy set."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from webhook.policy.model import CapacityClass, PlacementException, PlacementPolicy
from webhook.policy.run_source import RunSource

PolicyDocument: TypeAlias = PlacementPolicy | CapacityClass | PlacementException | RunSource
KNOWN: Final[Mapping[str, type[PolicyDocument]]] = {
    "PlacementPolicy": PlacementPolicy,
    "CapacityClass": CapacityClass,
    "PlacementException": PlacementException,
    "RunSource": RunSource,
}
