"""The kinds of documents that make a policy set, and reading files and objects to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from webhook import names
from webhook.policy import reader
from webhook.policy.cautions import cautions
from webhook.policy.document_parser import Forms, written_by_the_server
from webhook.policy.model import (
    CapacityClass,
    NamespacedPlacementPolicy,
    PlacementException,
    PlacementPolicy,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.policy.run_source import RunSource
    from webhook.policy.yaml_tree import Node

    Document: TypeAlias = reader.Document["PolicyDocument"]

PolicyDocument: TypeAlias = (
    "PlacementPolicy | NamespacedPlacementPolicy | CapacityClass | PlacementException | RunSource"
)
_MODELS: Final[Mapping[str, type[PolicyDocument]]] = {
    names.POLICY_KIND: PlacementPolicy,
    names.TEAM_KIND: NamespacedPlacementPolicy,
    names.CLASS_KIND: CapacityClass,
    names.EXCEPTION_KIND: PlacementException,
}


class _Models(Mapping[str, "type[PolicyDocument]"]):
    """The models by kind. RunSource is imported for the first document: few sets have one."""

    def __getitem__(self, kind: str) -> type[PolicyDocument]:
        if kind == names.SOURCE_KIND:
            from webhook.policy.run_source import RunSource

            return RunSource
        return _MODELS[kind]

    def __iter__(self) -> Iterator[str]:
        yield from (*_MODELS, names.SOURCE_KIND)

    def __len__(self) -> int:
        return len(_MODELS) + 1


KNOWN: Final = _Models()
_POLICIES: Final[Forms[PolicyDocument]] = Forms(
    KNOWN, "policy documents", unjudged=written_by_the_server, cautions=cautions
)


def parse(files: Mapping[str, bytes]) -> reader.Documents[PolicyDocument]:
    """Read policy files, YAML or JSON, by name; never raises, whatever is in them."""
    return reader.read_files(files, _POLICIES)


def parse_object(place: str, root: Node) -> reader.Documents[PolicyDocument]:
    """Read one object of a cluster, given as a tree; `place` is its resource and name."""
    return reader.read_one(place, root, _POLICIES)
