"""Objects of a cluster to a policy set: each is read and compiled once, and the whole judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from webhook.policy import nodes, source
from webhook.policy.composer import MAX_DEPTH
from webhook.policy.findings import Finding
from webhook.policy.load import Loaded, compiled
from webhook.policy.policy_set import Compiler
from webhook.policy.reader import Documents
from webhook.policy.set_judgement import judge_set, load_served
from webhook.policy.together.warnings import Memory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from webhook.policy.model import PolicyDocument
    from webhook.policy.set_judgement import Served, SetJudgement

_Read: TypeAlias = "tuple[bytes, Documents[PolicyDocument]]"
# An object has no lines.
_NOWHERE: Final = (0, 0)


class Objects:
    """Makes policy sets of a cluster's objects, one after the other.

    What an object's text was read as is remembered until the text is another, and what a policy
    was compiled to: of a thousand policies a write changes one.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Read] = {}
        self._compiler = Compiler()
        self._memory = Memory()

    def load(self, objects: Mapping[str, bytes]) -> Loaded:
        """The policy set of whole objects as JSON text, by resource and name.

        Names are as in `placementpolicies/spot`: they are the places of what is found. The hash is
        that of the same documents in files. Raises InvalidDocuments with every finding, warnings
        included, if one of them is an error.
        """
        return compiled(self.documents(objects), self._compiler)

    def judged(self, objects: Mapping[str, bytes], now: datetime) -> SetJudgement:
        """All that is to be said of the objects."""
        documents = self.documents(objects)
        return judge_set(documents, now=now, compiler=self._compiler, memory=self._memory)

    def served(self, objects: Mapping[str, bytes]) -> Served:
        """The set of the objects, with its faults. Raises as `load` does."""
        return load_served(self.documents(objects), self._compiler, self._memory)

    def documents(self, objects: Mapping[str, bytes]) -> Documents[PolicyDocument]:
        """What the objects' texts are read as, by whichever thread."""
        known = self._known
        self._known = seen = {
            place: _read(known.get(place), place, text) for place, text in sorted(objects.items())
        }
        return _together([documents for _, documents in seen.values()])


def _read(known: _Read | None, place: str, text: bytes) -> _Read:
    return known if known and known[0] == text else (text, read(place, text))


def load_objects(objects: Mapping[str, bytes]) -> Loaded:
    """The policy set of objects that are read this once: see Objects.load."""
    return Objects().load(objects)


def read(place: str, text: bytes) -> Documents[PolicyDocument]:
    """Reads one object; never raises, whatever is in it."""
    try:
        root = _node(orjson.loads(text), MAX_DEPTH)
    except ValueError as error:
        return Documents((), (Finding(place, *_NOWHERE, "", str(error)),))
    return source.parse_object(place, root)


def _together(parts: list[Documents[PolicyDocument]]) -> Documents[PolicyDocument]:
    return Documents(
        tuple(document for part in parts for document in part.documents),
        tuple(finding for part in parts for finding in part.findings),
        frozenset(name for part in parts for name in part.broken),
    )


def _node(value: Any, depth: int) -> nodes.Node:
    """A value of JSON as the tree that readers of files take. Raises ValueError if too deep."""
    if not depth:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    match value:
        case dict():
            entries = {key: (_scalar(key), _node(child, depth - 1)) for key, child in value.items()}
            return nodes.Mapping(_NOWHERE, entries)
        case list():
            return nodes.Sequence(_NOWHERE, [_node(item, depth - 1) for item in value])
        case _:
            return _scalar(value)


def _scalar(value: str | float | bool | None) -> nodes.Scalar:
    if isinstance(value, str):
        return nodes.Scalar(_NOWHERE, value, value, quoted=True)
    return nodes.Scalar(_NOWHERE, value, orjson.dumps(value).decode())
