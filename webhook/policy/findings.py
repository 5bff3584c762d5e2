"""What is found in documents: errors and warnings, each with its place in a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

Path: TypeAlias = tuple[str | int, ...]
Severity: TypeAlias = Literal["error", "warning"]

_MAX_STEP = 80


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

    def __str__(self) -> str:
        mark = "warning: " if self.severity == "warning" else ""
        path = f"{self.path}: " if self.path else ""
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {mark}{path}{self.message}"


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


def _printable(step: str) -> str:
    cut = step if len(step) <= _MAX_STEP else f"{step[:_MAX_STEP]}…"
    return cut if cut.isprintable() else repr(cut)
