"""What one row of the table of marks is: labels that mark a pod, and keys that tell facts of it.

The rows themselves are in `webhook.sources`, and `webhook.identity` reads pods by them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

Labels: TypeAlias = Mapping[str, str]
Words: TypeAlias = Mapping[str, str]
"""A system's words, in lower case, and ours for them."""

# labels, annotations -> the replica's index
Index: TypeAlias = Callable[[Labels, Labels], int | None]
# labels, annotations, role, framework -> whether the pod leads its run; None: not told
Leads: TypeAlias = Callable[[Labels, Labels, str | None, str | None], bool | None]


class Key(NamedTuple):
    """A key in the pod's labels or, if `annotation` says so, in its annotations."""

    name: str
    annotation: bool = False

    def __str__(self) -> str:
        return f"annotation {self.name}" if self.annotation else self.name


class Mark(NamedTuple):
    """A label that makes a pod belong; with `value` None its presence is enough.

    With `namespace` the label is on the pod's Namespace, and marks every pod in it.
    """

    key: str
    value: str | None = None
    namespace: bool = False

    def __str__(self) -> str:
        label = self.key if self.value is None else f"{self.key}={self.value}"
        return f"namespace label {label}" if self.namespace else label


class Clause(NamedTuple):
    """One way to tell a fact: the value at `key`, whatever its case, looked up in `words`.

    A string for `words` is the fact itself, whatever the value: the key's presence tells it.
    """

    key: Key
    words: Words | str


@dataclass(frozen=True, slots=True)
class Source:
    """One row: a system, the labels by which it marks its pods, and how each fact is read.

    `origin` names where the system's own code writes the labels. Of a fact's keys and clauses
    the first that yields anything counts; `kind_always` and `framework_always` are told when no
    clause does. `index` and `leads` are for what takes more than one look-up; the keys that they
    read are in `index_keys` and `leads_keys`.
    """

    name: str
    system: str
    origin: str
    marks: tuple[Mark, ...]
    run: tuple[Key, ...] = ()
    kind: tuple[Clause, ...] = ()
    kind_always: str | None = None
    framework: tuple[Clause, ...] = ()
    framework_always: str | None = None
    role: tuple[Clause, ...] = ()
    index_keys: tuple[Key, ...] = ()
    index: Index | None = None
    leads_keys: tuple[Key, ...] = ()
    leads: Leads | None = None
    note: str = ""

    def reads(self) -> frozenset[Key]:
        """Every key of the pod (not of its namespace) that this row reads."""
        return frozenset(
            (
                *(Key(mark.key) for mark in self.marks if not mark.namespace),
                *self.run,
                *(clause.key for clause in (*self.kind, *self.framework, *self.role)),
                *self.index_keys,
                *self.leads_keys,
            )
        )
