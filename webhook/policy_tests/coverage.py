"""Which policies no test reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhook.policy import source
from webhook.policy.model import PlacementPolicy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.policy_tests.verdict import Verdict


class Place(NamedTuple):
    """A policy by its file and name: files that are alternatives may share names."""

    file: str
    policy: str


def policies_in(files: Mapping[str, bytes]) -> frozenset[Place]:
    """Every policy that can be read in the files; those that cannot are reported elsewhere."""
    documents = source.parse(files).documents
    return frozenset(
        Place(document.file, document.model.name)
        for document in documents
        if isinstance(document.model, PlacementPolicy)
    )


def reached(loaded: Iterable[Place], verdicts: Iterable[Verdict]) -> frozenset[Place]:
    """Of the policies that tests were run over, those that one of them is about."""
    named = {name for verdict in verdicts for name in verdict.reached}
    return frozenset(place for place in loaded if place.policy in named)
