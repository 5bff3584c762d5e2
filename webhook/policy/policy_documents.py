"""The kinds of documents that make a policy set, and reading files and objects to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from webhook.policy import reader
from webhook.policy.cautions import cautions
from webhook.policy.document_parser import Forms, written_by_the_server
from webhook.policy.model import CapacityClass, PlacementException, PlacementPolicy
from webhook.policy.run_source import RunSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.policy.yaml_tree import Node

    Document: TypeAlias = reader.Document["PolicyDocument"]

PolicyDocument: TypeAlias = PlacementPolicy | CapacityClass | PlacementException | RunSource
KNOWN: Final[Mapping[str, type[PolicyDocument]]] = {
    "PlacementPolicy": PlacementPolicy,
    "CapacityClass": CapacityClass,
    "PlacementException": PlacementException,
    "RunSource": RunSource,
}
_POLICIES: Final[Forms[PolicyDocument]] = Forms(
    KNOWN, "policy documents", unjudged=written_by_the_server, cautions=cautions
)


def parse(files: Mapping[str, bytes]) -> reader.Documents[PolicyDocument]:
    """Read policy files, YAML or JSON, by name; never raises, whatever is in them."""
    return reader.read_files(files, _POLICIES)


def parse_object(place: str, root: Node) -> reader.Documents[PolicyDocument]:
    """Read one object of a cluster, given as a tree; `place` is its resource and name."""
    return reader.read_one(place, root, _POLICIES)
