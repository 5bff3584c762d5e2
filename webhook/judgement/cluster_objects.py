"""Compile a cluster's objects to a policy set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from webhook.judgement.set_judgement import judge_set, load_served
from webhook.judgement.together.warnings import Memory
from webhook.policy import policy_documents, yaml_tree
from webhook.policy.findings import Finding
from webhook.policy.load import Loaded, compiled
from webhook.policy.policy_set import Compiler
from webhook.policy.reader import Documents
from webhook.policy.yaml_text import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from webhook.judgement.set_judgement import Served, SetJudgement
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_documents import PolicyDocument

_Read: TypeAlias = "tuple[bytes, Documents[PolicyDocument]]"
# An object has no lines.
_NOWHERE: Final = (0, 0)


class Objects:
    """Compiles the policy sets of a cluster's objects, one after the other.

    Parsed objects and compiled policies are cached until their text changes: a write changes one
    policy of a thousand.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Read] = {}
        self._compiler = Compiler()
        self._memory = Memory()

    def load(self, objects: Mapping[str, bytes]) -> Loaded:
        """Return the policy set of whole objects as JSON text, by resource and name.

        Names are as in `placementpolicies/spot`: they are the places of what is found. The hash is
        that of the same documents in files. Raises InvalidDocuments with every finding, warnings
        included, if one of them is an error.
        """
        return compiled(self.documents(objects), self._compiler)

    def judge(
        self,
        objects: Mapping[str, bytes],
        now: datetime,
        classes: Mapping[str, Mapping[str, JsonObject]] | None = None,
    ) -> SetJudgement:
        """Return all findings about the objects; `classes` are those of judge_set."""
        return judge_set(
            self.documents(objects),
            now=now,
            classes=classes,
            compiler=self._compiler,
            memory=self._memory,
        )

    def served(self, objects: Mapping[str, bytes]) -> Served:
        """Return the set of the objects, with its faults. Raises as `load` does."""
        return load_served(self.documents(objects), self._compiler, self._memory)

    def documents(self, objects: Mapping[str, bytes]) -> Documents[PolicyDocument]:
        """Return the objects' texts as documents; safe in any thread."""
        known = self._known
        self._known = current = {
            place: old
            if (old := known.get(place)) and old[0] == text
            else (text, read_object(place, text))
            for place, text in sorted(objects.items())
        }
        return _together([documents for _, documents in current.values()])


def load_objects(objects: Mapping[str, bytes]) -> Loaded:
    """Return the policy set of objects that are read only once: see Objects.load."""
    return Objects().load(objects)


def read_object(place: str, text: bytes) -> Documents[PolicyDocument]:
    """Read one object; never raises, whatever is in it."""
    try:
        root = _node(orjson.loads(text), MAX_DEPTH)
    except ValueError as error:
        return Documents((), (Finding(place, *_NOWHERE, "", str(error)),))
    return policy_documents.parse_object(place, root)


def _together(parts: list[Documents[PolicyDocument]]) -> Documents[PolicyDocument]:
    return Documents(
        tuple(document for part in parts for document in part.documents),
        tuple(finding for part in parts for finding in part.findings),
        frozenset(name for part in parts for name in part.broken),
    )


def _node(value: Any, depth: int) -> yaml_tree.Node:
    """Return a JSON value as a YAML tree. Raises ValueError if it is nested too deeply."""
    if not depth:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    match value:
        case dict():
            entries = {key: (_scalar(key), _node(child, depth - 1)) for key, child in value.items()}
            return yaml_tree.Mapping(_NOWHERE, entries)
        case list():
            return yaml_tree.Sequence(_NOWHERE, [_node(item, depth - 1) for item in value])
        case _:
            return _scalar(value)


def _scalar(value: str | float | bool | None) -> yaml_tree.Scalar:
    if isinstance(value, str):
        return yaml_tree.Scalar(_NOWHERE, value, value, quoted=True)
    return yaml_tree.Scalar(_NOWHERE, value, orjson.dumps(value).decode())
