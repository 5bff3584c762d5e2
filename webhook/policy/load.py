"""Check documents together, and compile them to a policy set, or report every error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from webhook import names
from webhook.errors import InvalidDocuments
from webhook.names import CLASS_KIND, EXCEPTION_KIND, POLICY_KIND, SOURCE_KIND, TEAM_KIND
from webhook.placement import capacity
from webhook.placement.capacity import CapacityClass, InvalidClass
from webhook.policy import compile as compiling
from webhook.policy import policy_documents, team_policies
from webhook.policy.added_sources import source_faults, source_warnings, table_of
from webhook.policy.conditions import FIELDS
from webhook.policy.findings import Kind, path_text
from webhook.policy.model import (
    ALL,
    NamespacedPlacementPolicy,
    PlacementException,
    PlacementPolicy,
)
from webhook.policy.model import CapacityClass as CapacityClassDocument
from webhook.policy.policy_set import Compiler, PolicySet, hash_of
from webhook.policy.selectors import compile_selector
from webhook.strict import guess

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from webhook.policy.findings import Finding, Path
    from webhook.policy.policy_documents import Document, PolicyDocument
    from webhook.policy.reader import Documents
    from webhook.sources.table import SourceTable

# Marks that earlier versions did not read, so policies that write one may be stored. Such a set
# still serves: an error would stop it at the upgrade.
LATER_MARKS: Final = frozenset({"ray.io/serve"})
_MARKS: Final = "the table of marks (see `fairlead policy sources`)"

UNKNOWN_CLASS: Final = "there is no capacity class"


class Loaded(NamedTuple):
    """A policy set, and the warnings that go with it, ordered by place."""

    policies: PolicySet
    warnings: tuple[Finding, ...]


def load(files: Mapping[str, bytes]) -> Loaded:
    """Return the policy set of all documents in the files, given by name.

    Raises InvalidDocuments with every finding, warnings included, if one of them is an error.
    """
    return compiled(policy_documents.parse(files))


def compiled(documents: Documents[PolicyDocument], compiler: Compiler | None = None) -> Loaded:
    """Return the policy set of documents. Raises as `load` does.

    `compiler` may have cached what it compiled for the previous set.
    """
    classes, findings = judge_documents(documents)
    if any(finding.severity == "error" for finding in findings):
        raise InvalidDocuments(findings)
    good = [document.model for document in documents.documents]
    policies = [model for model in good if isinstance(model, PlacementPolicy)]
    policies += team_policies.policies_of(documents.documents, findings)
    exceptions = [model for model in good if isinstance(model, PlacementException)]
    policy_set = PolicySet(
        policies,
        classes,
        hash_of(document.derive(team_policies.content_of) for document in documents.documents),
        exceptions,
        compiler,
        table_of(documents.documents),
        team_policies.hashes(documents.documents),
    )
    return Loaded(policy_set, tuple(findings))


def judge_documents(
    documents: Documents[PolicyDocument],
) -> tuple[dict[str, CapacityClass], list[Finding]]:
    """Return every class that compiles, by name, and all findings, ordered by place."""
    good = documents.documents
    every = [(document, document.derive(_references)) for document in good]
    names_of_kinds = {references.key for _, references in every}
    # What teams write is no error for others.
    teams = [pair for pair in every if pair[1].key[0] == TEAM_KIND]
    referring = [pair for pair in every if pair[1].key[0] != TEAM_KIND] if teams else every
    # Few of the documents: policies are looked at once, and not for each kind.
    of_kind: dict[str, list[Document]] = {}
    others = [(key, document) for document, (key, *_) in referring if key[0] != POLICY_KIND]
    for (kind, _), document in others:
        of_kind.setdefault(kind, []).append(document)
    # An invalid class is reported at the class, not where it is named.
    class_keys = {key for key, _ in others} | documents.broken
    class_names = {name for kind, name in class_keys if kind == CLASS_KIND}
    classes, wrong_classes = compiled_classes(of_kind.get(CLASS_KIND, ()), class_names)
    sources = of_kind.get(SOURCE_KIND, ())
    exceptions = of_kind.get(EXCEPTION_KIND, ())
    named = names_of_kinds | documents.broken if exceptions else ()
    findings = sorted(
        [
            *documents.findings,
            *(collisions(good) if len(names_of_kinds) < len(good) else ()),
            *wrong_classes,
            *unknown_classes(referring, class_names),
            *source_faults(sources),
            *source_warnings(sources),
            *written_and_read(referring, table_of(sources)),
            *_without_effect(teams, referring, class_names),
            *unknown_policies(exceptions, {name for kind, name in named if kind == POLICY_KIND}),
        ]
    )
    return classes, findings


def collisions(documents: Sequence[Document]) -> Iterator[Finding]:
    """Report documents of one kind with the same name."""
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
    documents: Sequence[Document], class_names: Collection[str]
) -> tuple[dict[str, CapacityClass], list[Finding]]:
    """Return every capacity class that can be compiled, and what is wrong with the others.

    `class_names` are the names of all classes, including those whose documents have errors.
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
        class_name = str(model.spec.complement_of)
        path = ("spec", "complementOf")
        if class_name in classes and class_name in described_names:
            rest = capacity.complement(
                model.name, classes[class_name], autoscaled=bool(model.spec.autoscaled)
            )
            classes.setdefault(model.name, compiling.with_grace(rest, model))
        elif class_name in {other.name for _, other in complements}:
            what = f"{class_name!r} is a complement itself; name a class that has nodes"
            findings.append(document.finding(path, what, about=class_name))
        elif class_name not in class_names:
            findings.append(
                document.finding(path, _unknown(class_name, class_names), about=class_name)
            )
    return classes, findings


# By what policies write, too.
_SELECTORS: Final = [field for field in FIELDS if field.subject in ("labels", "annotations")]


class _References(NamedTuple):
    """Kind and name of a document, the classes that it names and the labels that it selects by,
    each with its path, and part, field and key of what it writes."""

    key: tuple[str, str]
    classes: Sequence[tuple[Path, str]]
    selected: Sequence[tuple[str, str, Path]]
    written: Sequence[tuple[str, str, str]]


_Referring: TypeAlias = "tuple[Document, _References]"


def _references(document: Document) -> _References:
    model = document.model
    return _References(
        (model.kind, model.name),
        [*model.class_names()] if isinstance(model, PlacementPolicy) else (),
        _selected(document),
        _written_keys(document),
    )


def unknown_classes(
    documents: Iterable[_Referring], class_names: Collection[str]
) -> Iterator[Finding]:
    """Report capacity settings for an unknown class."""
    for document, references in documents:
        for path, name in references.classes:
            if name not in class_names:
                yield document.finding(path, _unknown(name, class_names), about=name)


def _without_effect(
    teams: Sequence[_Referring], others: Sequence[_Referring], class_names: Collection[str]
) -> Iterator[Finding]:
    """Report teams' policies without effect."""
    written = {
        team_policies.Written(field, key, document.model.name)
        for document, references in (others if teams else ())
        for _, field, key in references.written
    }
    selected = {id(document): references.selected for document, references in teams}
    return team_policies.inert([document for document, _ in teams], class_names, written, selected)


def unknown_policies(
    documents: Sequence[Document], policy_names: Collection[str]
) -> Iterator[Finding]:
    """Report exceptions for an unknown policy: a typing error, or one that is added later."""
    for document in documents:
        if isinstance(document.model, PlacementException):
            for at, name in enumerate(document.model.spec.policies):
                if name != ALL and name not in policy_names:
                    hint = guess(name, tuple(sorted(policy_names)))
                    what = f"there is no policy {name!r}, so this entry has no effect{hint}"
                    yield document.finding(("spec", "policies", at), what, "warning")


def written_and_read(documents: Sequence[_Referring], sources: SourceTable) -> Iterator[Finding]:
    """Report labels and annotations that a policy writes, and that matching reads.

    A second call on our own output must match the same policies, so that it changes nothing.
    """
    read_labels: dict[str, str | tuple[Document, Path]] = {
        **dict.fromkeys(sources.read_labels - LATER_MARKS, _MARKS),
        names.KUEUE_PODSET: "the rule for pods that Kueue has admitted",
    }
    read_annotations: dict[str, str | tuple[Document, Path]] = {
        **dict.fromkeys(sources.read_annotations, "the table of marks")
    }
    for document, references in documents:
        for members, key, path in references.selected:
            read = read_labels if members == "labels" else read_annotations
            read.setdefault(key, (document, path))
    for document, references in documents:
        if references.written:
            yield from _written(document, read_labels, read_annotations)


def later_marks_written(document: Document) -> Iterator[Finding]:
    """Report labels of LATER_MARKS that a policy writes; a stored set still serves with them."""
    return _written(document, dict.fromkeys(LATER_MARKS, _MARKS), {}, Kind.WRITES_MARK)


def _written(
    document: Document,
    labels: Mapping[str, str | tuple[Document, Path]],
    annotations: Mapping[str, str | tuple[Document, Path]],
    kind: Kind = Kind.DOCUMENT,
) -> Iterator[Finding]:
    """Report what a policy writes of these keys, given with what reads each."""
    for part, field, key in document.derive(_references).written:
        who = labels.get(key) if field == "labels" else annotations.get(key)
        if who is not None:
            rule = "no policy may write what decides which policies match"
            what = f"{rule}: {who if isinstance(who, str) else _reader(*who)} reads it"
            about = key if kind is Kind.DOCUMENT else f"{document.model.name} {part} {key}"
            yield document.finding(("spec", part, field, key), what, about=about, kind=kind)


def _reader(document: Document, path: Path) -> str:
    kind = "exception" if isinstance(document.model, PlacementException) else "policy"
    return f"{kind} {document.model.name} ({path_text(path)})"


def _written_keys(document: Document) -> Sequence[tuple[str, str, str]]:
    """Return part, field and key of all labels and annotations that a policy writes."""
    model = document.model
    return [
        (part, field, key)
        for part, placement in (model.spec.parts() if isinstance(model, PlacementPolicy) else ())
        for field in ("labels", "annotations")
        for key in getattr(placement, field) or ()
    ]


def _selected(document: Document) -> Sequence[tuple[str, str, Path]]:
    """Return what the selectors of a policy or an exception read of pods: whether labels or
    annotations, the key, and the path."""
    model = document.model
    if not isinstance(model, PlacementPolicy | NamespacedPlacementPolicy | PlacementException):
        return ()
    excluded = model.spec.exclude if isinstance(model, PlacementPolicy) else []
    blocks: list[tuple[Path, object]] = [
        (("spec", "exclude", at), b) for at, b in enumerate(excluded)
    ]
    return [
        (field.subject, key, (*path, field.document_name))
        for path, match in [(("spec", "match"), model.spec.match), *blocks]
        for field in _SELECTORS
        if (selector := getattr(match, field.name, None)) is not None
        for key in sorted(compile_selector(selector).keys)
    ]


def _unknown(name: str, class_names: Collection[str]) -> str:
    sorted_names = sorted(class_names)
    defined = ", ".join(sorted_names) or "none is defined"
    hint = guess(name, tuple(sorted_names)) or "; create the class first"
    return f"{UNKNOWN_CLASS} {name!r} (classes: {defined}){hint}"
