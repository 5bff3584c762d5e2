"""Systems that an admin adds by documents RunSource: their faults, and the table with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.policy.run_source import RunSource
from webhook.sources import SHIPPED
from webhook.sources.table import System, system

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.policy.findings import Finding, Path
    from webhook.policy.policy_documents import Document
    from webhook.sources.table import SourceTable

# Fairlead's own row is above, and the row of whole namespaces is below all others.
_LOWEST: Final = 1
_HIGHEST: Final = 999
_SHIPPED_NAMES: Final = frozenset(each.name for each in SHIPPED.systems)
_Key = tuple[str, str]


def table_of(documents: Sequence[Document]) -> SourceTable:
    """Return the table with the systems of these documents, which have no faults."""
    return SHIPPED.with_systems(_system(each) for each in _of_sources(documents))


def source_errors(documents: Sequence[Document]) -> list[Finding]:
    """Return the errors of documents RunSource, by themselves and beside each other."""
    return [each for each in source_faults(documents) if each.severity == "error"]


def source_faults(documents: Sequence[Document]) -> Iterator[Finding]:
    """Yield what a document RunSource may not say, by itself or beside the others."""
    sources = _of_sources(documents)
    described: dict[_Key, str] = {
        key: each.name
        for each in SHIPPED.systems
        for kind in each.kinds
        if kind.pods or kind.code
        for key in [(kind.group, kind.kind)]
    }
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
                yield each.finding(path, what)
            described[key] = each.model.name
            yield from _like_faults(each, path, key, made)


def _own_faults(model: RunSource) -> Iterator[tuple[Path, str]]:
    spec = model.spec
    if model.name in _SHIPPED_NAMES:
        what = f"{model.name!r} is a source of Fairlead's own; choose another name"
        yield ("metadata", "name"), what
    if spec.identity is None and not spec.kinds:
        yield ("spec",), "want identity, kinds, or both; there is none"
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
    systems = [*SHIPPED.systems, *map(_system, sources)]
    return {
        (kind.group, kind.kind): [
            (pods.like.group, pods.like.kind) for pods in kind.pods if pods.like and pods.like.kind
        ]
        for each in systems
        for kind in each.kinds
        if kind.pods
    }


def _like_faults(
    document: Document, path: Path, key: _Key, made: Mapping[_Key, list[_Key]]
) -> Iterator[Finding]:
    for number, other in enumerate(made.get(key, ())):
        if other not in made:
            what = (
                f"nothing describes the pods of the kind {other[1]} of the group {other[0]!r}; "
                "describe it in a RunSource, or give a template"
            )
            yield document.finding((*path, "pods"), what)
        elif _reaches(other, key, made):
            what = f"entry {number} creates a {other[1]}, which creates a {key[1]} again; remove it"
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


def _of_sources(documents: Sequence[Document]) -> list[Any]:
    return [each for each in documents if isinstance(each.model, RunSource)]


def _system(document: Any) -> System:
    model: RunSource = document.model
    return system(model.name, model.spec.model_dump(by_alias=True, exclude_unset=True))
