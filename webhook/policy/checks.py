"""What only the whole set knows: names that collide or are not there, labels that are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.identity import READ_ANNOTATIONS, READ_LABELS
from webhook.placement import capacity
from webhook.placement.capacity import CapacityClass, InvalidClass
from webhook.policy import compile as compiling
from webhook.policy.exception_model import ALL, PlacementException
from webhook.policy.findings import path_text
from webhook.policy.model import CapacityClass as CapacityClassDocument
from webhook.policy.model import PlacementPolicy
from webhook.policy.selectors import compile_selector
from webhook.strict import guess

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from webhook.policy.findings import Finding, Path
    from webhook.policy.source import Document

UNKNOWN_CLASS: Final = "there is no capacity class"


def collisions(documents: Sequence[Document]) -> Iterator[Finding]:
    """Two documents of one kind and name."""
    first: dict[tuple[str, str], Document] = {}
    for document in documents:
        key = (document.model.kind, document.model.name)
        other = first.setdefault(key, document)
        if other is not document:
            line, _ = other.locate(("metadata", "name"))
            yield document.finding(
                ("metadata", "name"),
                f"there is a {key[0]} {key[1]!r} already, at {other.file}:{line}",
            )


def compiled_classes(
    documents: Sequence[Document], known: Collection[str]
) -> tuple[dict[str, CapacityClass], list[Finding]]:
    """Every capacity class that can be compiled, and what is wrong with the others.

    `known` are the names of all classes, of those too whose documents have errors.
    """
    classes: dict[str, CapacityClass] = {}
    findings: list[Finding] = []
    described: list[tuple[Document, CapacityClassDocument]] = []
    complements: list[tuple[Document, CapacityClassDocument]] = []
    for document in documents:
        if isinstance(document.model, CapacityClassDocument):
            group = described if document.model.spec.complement_of is None else complements
            group.append((document, document.model))
    for document, model in described:
        try:
            classes[model.name] = compiling.capacity_class(model)
        except InvalidClass as error:
            findings.append(document.finding(("spec", "nodes"), str(error), about="nodes"))
    described_names = {model.name for _, model in described}
    for document, model in complements:
        of = str(model.spec.complement_of)
        path = ("spec", "complementOf")
        if of in classes and of in described_names:
            rest = capacity.complement(
                model.name, classes[of], autoscaled=bool(model.spec.autoscaled)
            )
            classes.setdefault(model.name, rest)
        elif of in {other.name for _, other in complements}:
            what = f"{of!r} is a complement itself; name a class that has nodes"
            findings.append(document.finding(path, what, about=of))
        elif of not in known:
            findings.append(document.finding(path, _unknown(of, known), about=of))
    return classes, findings


def unknown_classes(documents: Sequence[Document], known: Collection[str]) -> Iterator[Finding]:
    """Capacity settings for a class that no document describes."""
    for document in documents:
        if isinstance(document.model, PlacementPolicy):
            for path, setting in document.model.capacity_settings():
                name = setting.class_name
                if name not in known:
                    yield document.finding(path, _unknown(name, known), about=name)


def unknown_policies(documents: Sequence[Document], known: Collection[str]) -> Iterator[Finding]:
    """Exceptions to a policy that no document is: a slip of the pen, or one that comes later."""
    for document in documents:
        if isinstance(document.model, PlacementException):
            for at, name in enumerate(document.model.spec.policies):
                if name != ALL and name not in known:
                    hint = guess(name, tuple(sorted(known)))
                    what = (
                        f"there is no policy {name!r}: until there is, nothing is set aside{hint}"
                    )
                    yield document.finding(("spec", "policies", at), what, "warning")


def written_and_read(documents: Sequence[Document]) -> Iterator[Finding]:
    """Labels and annotations that a policy writes though something reads them.

    A second call on our own output must find the same policies, or it would not be a no-op.
    """
    read_labels = dict.fromkeys(READ_LABELS, "the table of marks (see `fairlead sources`)")
    read_labels[names.KUEUE_PODSET] = "the rule for pods that Kueue has admitted"
    read_annotations = dict.fromkeys(READ_ANNOTATIONS, "the table of marks")
    for document in documents:
        who = "exception" if isinstance(document.model, PlacementException) else "policy"
        for key, path in _selected(document):
            read_labels.setdefault(key, f"{who} {document.model.name} ({path_text(path)})")
    for document in documents:
        if isinstance(document.model, PlacementPolicy):
            for part, placement in document.model.spec.parts():
                yield from _written(
                    document, ("spec", part, "labels"), placement.labels, read_labels
                )
                yield from _written(
                    document, ("spec", part, "annotations"), placement.annotations, read_annotations
                )


def _written(
    document: Document, path: Path, members: Mapping[str, str] | None, read: Mapping[str, str]
) -> Iterator[Finding]:
    for key in members or ():
        if key in read:
            what = f"no policy may write what decides which policies match: {read[key]} reads it"
            yield document.finding((*path, key), what, about=key)


def _selected(document: Document) -> Iterator[tuple[str, Path]]:
    """The pod labels that the selectors of a policy or an exception read, each with where."""
    model = document.model
    if isinstance(model, CapacityClassDocument):
        return
    excluded = model.spec.exclude if isinstance(model, PlacementPolicy) else []
    blocks: list[tuple[Path, object]] = [
        (("spec", "exclude", at), b) for at, b in enumerate(excluded)
    ]
    for path, match in [(("spec", "match"), model.spec.match), *blocks]:
        selector = getattr(match, "pod_selector", None)
        if selector is not None:
            for key in sorted(compile_selector(selector).keys):
                yield key, (*path, "podSelector")


def _unknown(name: str, known: Collection[str]) -> str:
    there = sorted(known)
    told = ", ".join(there) or "none is defined"
    hint = guess(name, tuple(there)) or "; create the class first"
    return f"{UNKNOWN_CLASS} {name!r} (classes: {told}){hint}"
