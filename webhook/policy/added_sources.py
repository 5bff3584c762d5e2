"""Systems that an admin adds by documents RunSource: their faults, and the table with them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.policy.findings import Kind
from webhook.policy.run_source import RunSource
from webhook.sources import SHIPPED
from webhook.sources.marks import Mark
from webhook.sources.table import System, system

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.policy.findings import Finding, Path
    from webhook.policy.policy_documents import Document
    from webhook.sources.kind_model import PodKind
    from webhook.sources.table import SourceTable

# Fairlead's own row is above, and the row of whole namespaces is below all others.
_LOWEST: Final = 1
_HIGHEST: Final = 999
_SHIPPED_NAMES: Final = frozenset(each.name for each in SHIPPED.systems)
_Key = tuple[str, str]
_DESCRIBED: Final[Mapping[_Key, str]] = {
    (kind.group, kind.kind): each.name
    for each in SHIPPED.systems
    for kind in each.kinds
    if kind.pods or kind.code
}
# Groups of pods of one object. Kinds that create others multiply.
MOST_GROUPS: Final = 256


def table_of(documents: Sequence[Document]) -> SourceTable:
    """Return the table with the systems of these documents.

    What ships has precedence over what is added: a system of a name that ships is left out, and so
    is a kind that ships with its pods (`ship_already` reports both).
    """
    systems = [own_system(each) for each in sources_among(documents)]
    return SHIPPED.with_systems(
        replace(each, kinds=tuple(kind for kind in each.kinds if _key(kind) not in _DESCRIBED))
        for each in systems
        if each.name not in _SHIPPED_NAMES
    )


def source_errors(documents: Sequence[Document]) -> list[Finding]:
    """Return the errors of documents RunSource, by themselves and beside each other."""
    return [*source_faults(documents), *ship_already(documents)]


def ship_already(documents: Sequence[Document]) -> Iterator[Finding]:
    """Yield each name and kind that a later version may have brought.

    A stored set still serves with them: an error would stop it at the upgrade.
    """
    for each in sources_among(documents):
        name = each.model.name
        if name in _SHIPPED_NAMES:
            what = (
                f"{name!r} is a source of Fairlead's own, which is used instead; choose another "
                "name, or delete this one"
            )
            at: Path = ("metadata", "name")
            yield each.finding(at, what, kind=Kind.SHIPS_ALREADY, about=name)
        for number, kind in enumerate(each.model.spec.kinds or ()):
            if (kind.group, kind.kind) in _DESCRIBED:
                what = (
                    f"the source {_DESCRIBED[kind.group, kind.kind]} of Fairlead's own describes "
                    f"the kind {kind.kind} of the group {kind.group!r}, and is used instead; "
                    "remove it here"
                )
                path = ("spec", "kinds", number)
                about = f"{name} {kind.group} {kind.kind}"
                yield each.finding(path, what, kind=Kind.SHIPS_ALREADY, about=about)


def marks_of(model: RunSource) -> list[Mark]:
    """Return the labels of pods that mark them."""
    identity = model.spec.identity
    return [
        Mark(each.label, each.value)
        for each in (identity.marks if identity else ())
        if each.label is not None
    ]


def source_faults(documents: Sequence[Document]) -> Iterator[Finding]:
    """Report what a document RunSource may not say, by itself or beside the others."""
    sources = sources_among(documents)
    described: dict[_Key, str] = {}
    made = _made_by(sources)
    for each in sources:
        for path, message in _own_faults(each.model):
            yield each.finding(path, message)
        for number, kind in enumerate(each.model.spec.kinds or ()):
            path = ("spec", "kinds", number)
            key = (kind.group, kind.kind)
            if key in described:
                what = (
                    f"the source {described[key]} describes the kind {kind.kind} of the group "
                    f"{kind.group!r} already; remove it from one of them"
                )
                yield each.finding(path, what, about=kind.kind)
            described[key] = each.model.name
            if key not in _DESCRIBED:
                yield from _like_faults(each, path, key, made)


def _own_faults(model: RunSource) -> Iterator[tuple[Path, str]]:
    spec = model.spec
    for number, kind in enumerate(spec.kinds or ()):
        if kind.code is not None:
            yield ("spec", "kinds", number, "code"), "only Fairlead's own sources may name a module"
    if spec.identity is None:
        return
    if not _LOWEST <= spec.identity.precedence <= _HIGHEST:
        what = (
            f"{spec.identity.precedence} is the precedence of a source of Fairlead's own; want "
            f"{_LOWEST} to {_HIGHEST}"
        )
        yield ("spec", "identity", "precedence"), what
    for number, mark in enumerate(spec.identity.marks):
        at: Path = ("spec", "identity", "marks", number)
        if mark.namespace_label is not None:
            what = f"only {names.PLACE} marks a whole namespace; give a label of the pod"
            yield (*at, "namespaceLabel"), what
        elif mark.label is not None and mark.label.startswith(names.PREFIX):
            yield (*at, "label"), f"labels with {names.PREFIX} are Fairlead's own; give another one"


def _made_by(sources: Sequence[Document]) -> Mapping[_Key, list[_Key]]:
    """Return for each kind with pods the kinds that it creates instead of pods."""
    systems = table_of(sources).systems
    return {
        (kind.group, kind.kind): [
            (pods.like.group, pods.like.kind) for pods in kind.pods if pods.like and pods.like.kind
        ]
        for each in systems
        for kind in each.kinds
        if kind.pods
    }


def _groups(key: _Key, made: Mapping[_Key, list[_Key]], most: int = MOST_GROUPS) -> int:
    """Return how many groups of pods an object of a kind may have, or a number above `most`."""
    count = 1
    if most < 1:
        return count
    for other in made.get(key, ()):
        count += _groups(other, made, most - count)
        if count > most:
            break
    return count


def _like_faults(
    document: Document, path: Path, key: _Key, made: Mapping[_Key, list[_Key]]
) -> Iterator[Finding]:
    circular = False
    for number, other in enumerate(made.get(key, ())):
        if other not in made:
            what = (
                f"nothing describes the pods of the kind {other[1]} of the group {other[0]!r}; "
                "describe it in a RunSource, or give a template"
            )
            yield document.finding((*path, "pods"), what)
        elif _reaches(other, key, made):
            circular = True
            what = f"entry {number} creates a {other[1]}, which creates a {key[1]} again; remove it"
            yield document.finding((*path, "pods"), what)
    if not circular and _groups(key, made) > MOST_GROUPS:
        what = f"kinds that create each other lead to more than {MOST_GROUPS} groups of pods"
        yield document.finding((*path, "pods"), what)


def _reaches(start: _Key, goal: _Key, made: Mapping[_Key, list[_Key]]) -> bool:
    seen: set[_Key] = set()
    left = [start]
    while left:
        key = left.pop()
        if key == goal:
            return True
        if key not in seen:
            seen.add(key)
            left += made.get(key, ())
    return False


def _key(kind: PodKind) -> _Key:
    return kind.group, kind.kind


def sources_among(documents: Sequence[Document]) -> list[Any]:
    """Return the documents RunSource."""
    return [each for each in documents if isinstance(each.model, RunSource)]


def own_system(document: Any) -> System:
    """Return the system that a document RunSource describes."""
    model: RunSource = document.model
    return system(model.name, model.spec.model_dump(by_alias=True, exclude_unset=True))
