"""The table of all systems: those that ship with Fairlead, and those that an admin adds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from webhook.sources.kind_model import pod_kind
from webhook.sources.marks import source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.sources.kind_model import PodKind
    from webhook.sources.marks import Source


@dataclass(frozen=True, slots=True)
class System:
    """One file: its row and its kinds. A system without a row marks no pods, and comes last."""

    name: str
    precedence: int
    row: Source | None
    kinds: tuple[PodKind, ...]


def system(name: str, spec: Mapping[str, Any]) -> System:
    identity = spec.get("identity")
    return System(
        name,
        int(identity["precedence"]) if identity else -1,
        source(name, spec) if identity else None,
        tuple(pod_kind(kind) for kind in spec.get("kinds", ())),
    )


@dataclass(frozen=True)
class SourceTable:
    """All systems, highest precedence first, and what is read from them.

    rows:             the rows that recognize pods, in order of precedence
    by_mark:          label of a mark -> the rows that it marks, each with the value (None: any)
    read_labels:      the pod labels that the rows read; a policy may not write them
    read_annotations: the same for annotations
    pod_kinds:        the kinds that create pods, by API group and kind
    template_kinds:   those whose pods are predictable
    """

    systems: tuple[System, ...]
    rows: tuple[Source, ...] = field(init=False, compare=False)
    by_mark: Mapping[str, Sequence[tuple[int, str | None]]] = field(init=False, compare=False)
    marks: frozenset[str] = field(init=False, compare=False)
    read_labels: frozenset[str] = field(init=False, compare=False)
    read_annotations: frozenset[str] = field(init=False, compare=False)
    pod_kinds: Mapping[tuple[str, str], Sequence[PodKind]] = field(init=False, compare=False)
    template_kinds: Mapping[tuple[str, str], Sequence[PodKind]] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        ordered = sorted(self.systems, key=lambda system: (-system.precedence, system.name))
        rows = tuple(system.row for system in ordered if system.row is not None)
        by_mark: dict[str, list[tuple[int, str | None]]] = {}
        for number, row in enumerate(rows):
            for mark in row.marks:
                if not mark.namespace:
                    by_mark.setdefault(mark.key, []).append((number, mark.value))
        keys = [key for row in rows for key in row.read_keys()]
        kinds = _by_kind(kind for system in ordered for kind in system.kinds)
        values = {
            "systems": tuple(ordered),
            "rows": rows,
            "by_mark": by_mark,
            "marks": frozenset(by_mark),
            "read_labels": frozenset(key.name for key in keys if not key.annotation),
            "read_annotations": frozenset(key.name for key in keys if key.annotation),
            "pod_kinds": kinds,
            "template_kinds": {
                key: pod_kinds
                for key, pod_kinds in kinds.items()
                if any(pod_kind.pods for pod_kind in pod_kinds)
            },
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def with_systems(self, added: Iterable[System]) -> SourceTable:
        more = tuple(added)
        return SourceTable((*self.systems, *more)) if more else self

    def with_those_of(self, other: SourceTable) -> SourceTable:
        return self.with_systems(system for system in other.systems if system not in self.systems)


def _by_kind(kinds: Iterable[PodKind]) -> dict[tuple[str, str], Sequence[PodKind]]:
    kinds_by_key: dict[tuple[str, str], list[PodKind]] = {}
    for kind in kinds:
        kinds_by_key.setdefault((kind.group, kind.kind), []).append(kind)
    return {key: tuple(_by_use(pod_kinds)) for key, pod_kinds in kinds_by_key.items()}


def _by_use(kinds: Sequence[PodKind]) -> list[PodKind]:
    """Return the descriptions of one kind: of some versions first, and those with pods only."""
    useful = [kind for kind in kinds if kind.pods or kind.code] or kinds
    return sorted(useful, key=lambda kind: not kind.versions)
