"""Errors and warnings about documents, with their places."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from webhook.shortening import cut, first_few

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Path: TypeAlias = tuple[str | int, ...]
Severity: TypeAlias = Literal["error", "warning"]

_STEP: Final = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")
_MAX_STEP = 80


class Kind(StrEnum):
    """The kind of a finding, for programs and tests; messages may change."""

    DOCUMENT = "document"  # an error in a document, or a likely mistake; an unknown name
    EMPTY_SETTING = "empty-setting"
    TIME = "time"  # an exception that has ended, or lasts long
    MATCHES_NOTHING = "matches-nothing"
    EVERY_POD_REJECTED = "every-pod-rejected"
    SOME_PODS_REJECTED = "some-pods-rejected"
    IMPOSSIBLE_SETTING = "impossible-setting"
    CONTRADICTS_ITSELF = "contradicts-itself"
    REFUSED_PODS = "refused-pods"  # the API server refuses pods that get a setting
    WRITES_MARK = "writes-mark"  # a label that only later versions read as a mark
    SHIPS_ALREADY = "ships-already"  # a source that is one of Fairlead's own, perhaps of late
    INERT = "inert"  # a team's policy that has no effect
    TOO_LARGE = "too-large"  # an object that the webhook refuses to write
    SAME_MARK = "same-mark"  # of two sources
    GENERAL_MARK = "general-mark"  # one that pods of other systems have, too
    PODS_WITHOUT_MARK = "pods-without-mark"  # of a kind that a source describes
    NEVER_APPLIED = "never-applied"
    DROPPED_BESIDE = "dropped-beside"
    EQUAL_PRIORITY = "equal-priority"
    NO_NODE = "no-node"  # given the nodes that there are
    NOT_CHECKED = "not-checked"  # too many policies, or too large ones, for the time there is
    WEAKENS = "weakens"  # a setting that gives pods more rights, or more nodes, than they ask for
    PLUGIN_TOLERATES = "plugin-tolerates"  # taints, if it runs, for pods with a request
    TAINTS_NOT_TOLERATED = "taints-not-tolerated"


# Findings about policies together with others: of fifty, often about each.
_BESIDE: Final = frozenset(
    {
        Kind.SOME_PODS_REJECTED,
        Kind.NEVER_APPLIED,
        Kind.DROPPED_BESIDE,
        Kind.EQUAL_PRIORITY,
        Kind.NOT_CHECKED,
    }
)
# Errors in a set that compiles, which `check` and the webhook reject. A set that is stored with
# such a fault still serves, and an alert reports it.
FAULTS: Final = frozenset(
    {
        Kind.EVERY_POD_REJECTED,
        Kind.IMPOSSIBLE_SETTING,
        Kind.CONTRADICTS_ITSELF,
        Kind.REFUSED_PODS,
        Kind.WRITES_MARK,
        Kind.SHIPS_ALREADY,
        Kind.TOO_LARGE,
    }
)


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One error or warning. Findings sort by file, line and column.

    Lines and columns count from 1, columns in characters. `path` is as `path_text` writes it, and
    empty if the text is not a document. The text has the form of compiler messages:
    `spot.yaml:17:19: spec.overrides.tolerations[0].operator: 'Exist' is not one of Exists, Equal`.
    An object of a cluster has no lines: line and column are 0, `file` is its resource and name, and
    the text is `placementpolicies/spot: spec.priority: want a whole number, not 'high'`.
    `about` identifies the finding if its message has other facts too, such as which documents
    exist. It stays the same as long as the problem does.
    """

    file: str
    line: int
    column: int
    path: str
    message: str
    severity: Severity = "error"
    about: str = field(default="", compare=False, kw_only=True)
    kind: Kind = field(default=Kind.DOCUMENT, compare=False, kw_only=True)

    @property
    def is_fault(self) -> bool:
        """Whether it is an error with which a stored set still serves."""
        return self.severity == "error" and self.kind in FAULTS

    @property
    def text(self) -> str:
        """The finding without its place: `spec.priority: want a whole number, not 'high'`."""
        return f"{self.path}: {self.message}" if self.path else self.message

    def __str__(self) -> str:
        mark = "warning: " if self.severity == "warning" else ""
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {mark}{self.text}"


class Caution(NamedTuple):
    """A likely mistake: a warning at a path from the document's root."""

    at: Path
    message: str
    kind: Kind = Kind.DOCUMENT


def path_text(path: Path) -> str:
    """`spec.tolerations[0].key`; a key that is not a field's name is in brackets, unquoted.

    >>> path_text(("spec", "defaults", "nodeSelector", "kubernetes.io/os"))
    'spec.defaults.nodeSelector[kubernetes.io/os]'
    """
    text = ""
    for step in path:
        if isinstance(step, str) and step.isidentifier() and len(step) <= _MAX_STEP:
            text += f".{step}" if text else step
        else:
            key = cut(str(step), _MAX_STEP)
            text += f"[{key if key.isprintable() else repr(key)}]"
    return text


def parse_path(text: str) -> Path:
    """Return the path of a text as `path_text` and Kubernetes write it; digits are positions.

    >>> parse_path("spec.tolerations[0].key"), parse_path("metadata.labels[a.b/c]")
    (('spec', 'tolerations', 0, 'key'), ('metadata', 'labels', 'a.b/c'))
    """
    steps = _STEP.findall(text)
    return tuple(name or (int(key) if key.isdecimal() else key) for name, key in steps)


# Of more warnings of one kind about one field, only the first is reported, with the places of the
# others.
_MOST_ALIKE: Final = 3
_NAMED: Final = 3


def condensed(findings: Iterable[Finding], *, same_words: bool = True) -> list[Finding]:
    """Return the findings, with one for all of one kind about one field of many policies.

    Without `same_words` those whose messages are equal count once.
    """
    alike: dict[tuple[object, ...], list[Finding]] = {}
    for at, finding in enumerate(findings):
        field = re.sub(r"\[\d+\]", "[]", finding.path)
        gist = (
            (finding.kind, field)
            if finding.severity == "warning" and finding.kind in _BESIDE
            else at
        )
        alike.setdefault((gist,), []).append(finding)
    return [
        finding for group in alike.values() for finding in _as_one(group, same_words=same_words)
    ]


def _as_one(group: Sequence[Finding], *, same_words: bool) -> Sequence[Finding]:
    count = len(group) if same_words else len({finding.message for finding in group})
    if count <= _MOST_ALIKE:
        return group
    first, *others = group
    places = [
        f"{finding.file}:{finding.line}" if finding.line else finding.file for finding in others
    ]
    what = f"{first.message}; {len(others)} more warnings like this: {first_few(places, _NAMED)}"
    return [replace(first, message=what)]
