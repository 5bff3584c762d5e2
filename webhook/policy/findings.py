"""What is found in documents: errors and warnings, each with its place in a file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Path: TypeAlias = tuple[str | int, ...]
Severity: TypeAlias = Literal["error", "warning"]

_MAX_STEP = 80


class Kind(StrEnum):
    """What a finding is about. Programs and tests ask for the kind: words may change."""

    DOCUMENT = "document"  # a document that is wrong, or seldom meant; a name that is not there
    EMPTY_SETTING = "empty-setting"
    TIME = "time"  # an exception that has ended, or lasts long
    MATCHES_NOTHING = "matches-nothing"
    EVERY_POD_REJECTED = "every-pod-rejected"
    SOME_PODS_REJECTED = "some-pods-rejected"
    IMPOSSIBLE_SETTING = "impossible-setting"
    NEVER_APPLIED = "never-applied"
    DROPPED_BESIDE = "dropped-beside"
    EQUAL_PRIORITY = "equal-priority"
    NO_NODE = "no-node"  # given the nodes that there are
    NOT_CHECKED = "not-checked"  # too many policies, or too large ones, for the time there is
    TAINTS_NOT_TOLERATED = "taints-not-tolerated"


# What is told of policies beside others: of fifty, often of each.
_BESIDE: Final = frozenset(
    {Kind.SOME_PODS_REJECTED, Kind.NEVER_APPLIED, Kind.DROPPED_BESIDE, Kind.EQUAL_PRIORITY}
)
# What is wrong with a set though it compiles: refused by `check` and on write. A set that is
# stored with such a fault serves as before, and an alarm names it.
FAULTS: Final = frozenset({Kind.EVERY_POD_REJECTED, Kind.IMPOSSIBLE_SETTING})


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One error or warning. Findings sort by file, line and column.

    Lines and columns count from 1, columns in characters. `path` is as `path_text` writes it, and
    empty where the text is no document. As text, as compilers write it:
    `spot.yaml:17:19: spec.overrides.tolerations[0].operator: 'Exist' is not one of Exists, Equal`.
    An object of a cluster has no lines: line and column are 0, `file` is its resource and name, and
    the text is `placementpolicies/spot: spec.priority: want a whole number, not 'high'`.
    `about` is what the finding is about where its message says more than that, such as which other
    documents there are: as long as the same thing is wrong it stays the same.
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
        """Whether it is an error with which a stored set serves all the same."""
        return self.severity == "error" and self.kind in FAULTS

    @property
    def text(self) -> str:
        """The finding without its place: `spec.priority: want a whole number, not 'high'`."""
        return f"{self.path}: {self.message}" if self.path else self.message

    def __str__(self) -> str:
        mark = "warning: " if self.severity == "warning" else ""
        path = f"{self.path}: " if self.path else ""
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {mark}{path}{self.message}"


class Caution(NamedTuple):
    """What a document may say, yet seldom means: a warning at a path from the document's root."""

    at: Path
    message: str
    kind: Kind = Kind.DOCUMENT


def path_text(path: Path) -> str:
    """`spec.tolerations[0].key`; a key that is no field's name stands in brackets, unquoted.

    >>> path_text(("spec", "defaults", "nodeSelector", "kubernetes.io/os"))
    'spec.defaults.nodeSelector[kubernetes.io/os]'
    """
    text = ""
    for step in path:
        if isinstance(step, str) and step.isidentifier() and len(step) <= _MAX_STEP:
            text += f".{step}" if text else step
        else:
            text += f"[{_printable(str(step))}]"
    return text


def first_few(names: Sequence[str], most: int) -> str:
    """The first few names, and how many more there are.

    >>> first_few(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


# Of more warnings of one kind about one field, the first is told, and where the others are.
_MOST_ALIKE: Final = 3
_NAMED: Final = 3


def condensed(findings: Iterable[Finding], *, same_words: bool = True) -> list[Finding]:
    """The findings, with those of one kind about one field of many policies told as one.

    Without `same_words` those whose messages are equal count once.
    """
    alike: dict[tuple[object, ...], list[Finding]] = {}
    for at, each in enumerate(findings):
        field = re.sub(r"\[\d+\]", "[]", each.path)
        gist = (each.kind, field) if each.severity == "warning" and each.kind in _BESIDE else at
        alike.setdefault((gist,), []).append(each)
    return [each for group in alike.values() for each in _as_one(group, same_words=same_words)]


def _as_one(group: Sequence[Finding], *, same_words: bool) -> Sequence[Finding]:
    count = len(group) if same_words else len({each.message for each in group})
    if count <= _MOST_ALIKE:
        return group
    first, *others = group
    places = [f"{each.file}:{each.line}" if each.line else each.file for each in others]
    what = f"{first.message}; {len(others)} more warnings like this: {first_few(places, _NAMED)}"
    return [replace(first, message=what)]


def _printable(step: str) -> str:
    cut = step if len(step) <= _MAX_STEP else f"{step[:_MAX_STEP]}…"
    return cut if cut.isprintable() else repr(cut)
