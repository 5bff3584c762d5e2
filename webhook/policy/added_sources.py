"""Systems that an admin adds by documents RunSource: the table with them, faults and warnings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.policy.findings import Kind
from webhook.shortening import first_few
from webhook.sources import SHIPPED
from webhook.sources.marks import Mark
from webhook.sources.table import System, system

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.policy.findings import Finding, Path
    from webhook.policy.policy_documents import Document
    from webhook.policy.run_source import RunSource
    from webhook.sources.kind_model import PodKind, Pods
    from webhook.sources.marks import Source
    from webhook.sources.table import SourceTable

# Fairlead's own row is above, and the row of whole namespaces is below all others.
_LOWEST: Final = 1
_HIGHEST: Final = 999
_SHIPPED_NAMES: Final = frozenset(system.name for system in SHIPPED.systems)
_Key = tuple[str, str]
_DESCRIBED: Final[Mapping[_Key, str]] = {
    (kind.group, kind.kind): system.name
    for system in SHIPPED.systems
    for kind in system.kinds
    if kind.pods or kind.code
}
# Labels that Kubernetes' controllers, or charts and authors of all kinds of applications, write.
_BY_JOBS: Final = "all pods of Jobs"
_BY_AUTHORS: Final = "pods of all kinds of applications"
_GENERAL: Final[Mapping[str, str]] = {
    **dict.fromkeys(("job-name", "controller-uid"), _BY_JOBS),
    "pod-template-hash": "all pods of Deployments",
    "controller-revision-hash": "all pods of StatefulSets and DaemonSets",
    "pod-template-generation": "all pods of DaemonSets",
    **dict.fromkeys(
        (
            *("app", "name", "component", "role", "tier", "version", "release", "chart", "run"),
            *("heritage", "instance", "k8s-app", "env", "environment", "team", "owner", "project"),
            *("service", "part-of", "managed-by", "stage", "type"),
        ),
        _BY_AUTHORS,
    ),
}
_GENERAL_PREFIXES: Final[Mapping[str, str]] = {
    "batch.kubernetes.io/": _BY_JOBS,
    "apps.kubernetes.io/": "all pods of StatefulSets",
    "statefulset.kubernetes.io/": "all pods of StatefulSets",
    "app.kubernetes.io/": _BY_AUTHORS,
    "helm.sh/": _BY_AUTHORS,
}
_NAMED: Final = 3
# Groups of pods of one object. Kinds that create others multiply.
MOST_GROUPS: Final = 256


def table_of(documents: Sequence[Document]) -> SourceTable:
    """Return the table with the systems of these documents.

    What ships has precedence over what is added: a system of a name that ships is left out, and so
    is a kind that ships with its pods (`ship_already` reports both).
    """
    systems = [own_system(document) for document in sources_among(documents)]
    return SHIPPED.with_systems(
        replace(system, kinds=tuple(kind for kind in system.kinds if _key(kind) not in _DESCRIBED))
        for system in systems
        if system.name not in _SHIPPED_NAMES
    )


def source_errors(documents: Sequence[Document]) -> list[Finding]:
    """Return the errors of documents RunSource, by themselves and beside each other."""
    return [*source_faults(documents), *ship_already(documents)]


def ship_already(documents: Sequence[Document]) -> Iterator[Finding]:
    """Yield each name and kind that a later version may have brought.

    A stored set still serves with them: an error would stop it at the upgrade.
    """
    for document in sources_among(documents):
        name = document.model.name
        if name in _SHIPPED_NAMES:
            what = (
                f"{name!r} is a source of Fairlead's own, which is used instead; choose another "
                "name, or delete this one"
            )
            at: Path = ("metadata", "name")
            yield document.finding(at, what, kind=Kind.SHIPS_ALREADY, about=name)
        for number, kind in enumerate(document.model.spec.kinds or ()):
            if (kind.group, kind.kind) in _DESCRIBED:
                what = (
                    f"the source {_DESCRIBED[kind.group, kind.kind]} of Fairlead's own describes "
                    f"the kind {kind.kind} of the group {kind.group!r}, and is used instead; "
                    "remove it here"
                )
                path = ("spec", "kinds", number)
                about = f"{name} {kind.group} {kind.kind}"
                yield document.finding(path, what, kind=Kind.SHIPS_ALREADY, about=about)


def marks_of(model: RunSource) -> list[Mark]:
    """Return the labels of pods that mark them."""
    identity = model.spec.identity
    return [
        Mark(mark.label, mark.value)
        for mark in (identity.marks if identity else ())
        if mark.label is not None
    ]


def source_faults(documents: Sequence[Document]) -> Iterator[Finding]:
    """Report what a document RunSource may not say, by itself or beside the others."""
    sources = sources_among(documents)
    described: dict[_Key, str] = {}
    made = _made_by(sources)
    for source in sources:
        for path, message in _own_faults(source.model):
            yield source.finding(path, message)
        for number, kind in enumerate(source.model.spec.kinds or ()):
            path = ("spec", "kinds", number)
            key = (kind.group, kind.kind)
            if key in described:
                what = (
                    f"the source {described[key]} describes the kind {kind.kind} of the group "
                    f"{kind.group!r} already; remove it from one of them"
                )
                yield source.finding(path, what, about=kind.kind)
            described[key] = source.model.name
            if key not in _DESCRIBED:
                yield from _like_faults(source, path, key, made)


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
        for system in systems
        for kind in system.kinds
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
    visited: set[_Key] = set()
    left = [start]
    while left:
        key = left.pop()
        if key == goal:
            return True
        if key not in visited:
            visited.add(key)
            left += made.get(key, ())
    return False


def _key(kind: PodKind) -> _Key:
    return kind.group, kind.kind


def sources_among(documents: Sequence[Document]) -> list[Any]:
    """Return the documents RunSource."""
    return [document for document in documents if document.model.kind == names.SOURCE_KIND]


def own_system(document: Any) -> System:
    """Return the system that a document RunSource describes."""
    model: RunSource = document.model
    return system(model.name, model.spec.model_dump(by_alias=True, exclude_unset=True))


def source_warnings(documents: Sequence[Document]) -> Iterator[Finding]:
    """Yield the warnings about the marks of sources."""
    table = table_of(documents)
    for document in sources_among(documents):
        yield from _same_marks(document, table)
        yield from _general_marks(document)
        yield from _missed_pods(document, table)


def _same_marks(document: Any, table: SourceTable) -> Iterator[Finding]:
    """Yield a warning for each mark that another source has, too, with whose pods they are."""
    model: RunSource = document.model
    order = {row.name: place for place, row in enumerate(table.rows)}
    for number, mark in enumerate(marks_of(model)):
        for other in table.rows:
            both = model.name in order and other.name != model.name
            if both and any(_meet(mark, its) for its in other.marks):
                path = ("spec", "identity", "marks", number)
                what = _whose(mark, model, other, order)
                yield document.finding(path, what, "warning", kind=Kind.SAME_MARK, about=other.name)


def _whose(mark: Mark, model: RunSource, other: Source, order: Mapping[str, int]) -> str:
    first, second = sorted((model.name, other.name), key=order.__getitem__)
    return (
        f"the source {other.name} has the mark {mark}, too: a pod with it belongs to {first}, and "
        f"{second} adds only what {first} does not tell; give the two sources different "
        "precedences in the order that you mean"
    )


def _meet(mark: Mark, other: Mark) -> bool:
    """Return whether some label is both marks."""
    same = mark.value == other.value or None in (mark.value, other.value)
    return mark.key == other.key and not other.namespace and same


def _general_marks(document: Any) -> Iterator[Finding]:
    """Yield a warning for each mark that pods of other systems have, too, whatever its value."""
    model: RunSource = document.model
    for number, mark in enumerate(marks_of(model)):
        prefix, slash, _ = mark.key.rpartition("/")
        whose = _GENERAL.get(mark.key) or _GENERAL_PREFIXES.get(prefix + slash)
        if whose and mark.value is None:
            what = (
                f"{whose} may have the label {mark}: each of them is then sent to the webhook and "
                "placed as part of a run; add a value, or name a label that only "
                f"{model.spec.system} writes"
            )
            path = ("spec", "identity", "marks", number)
            yield document.finding(path, what, "warning", kind=Kind.GENERAL_MARK, about=mark.key)


def _missed_pods(document: Any, table: SourceTable) -> Iterator[Finding]:
    """Yield a warning for each group of pods that no mark is added to: they are of no run."""
    model: RunSource = document.model
    marks = marks_of(model)
    if not marks:
        return
    reached_kinds: dict[object, bool] = {}
    for number, kind in enumerate(own_system(document).kinds):
        for position, pods in enumerate(() if kind.reusable else kind.pods):
            if not pods.unmarked and not _reached(pods, table, reached_kinds):
                named = first_few(list(map(str, marks)), _NAMED)
                what = (
                    f"no mark is among the labels that these pods of a {kind.kind} get by adds, so "
                    f"they are part of a run only if their author writes one ({named}); add one to "
                    "adds if the system writes it, or explain it in unmarked"
                )
                path = ("spec", "kinds", number, "pods", position)
                yield document.finding(path, what, "warning", kind=Kind.PODS_WITHOUT_MARK)


def _reached(pods: Pods, table: SourceTable, reached_kinds: dict[object, bool]) -> bool:
    """Return True if these pods get a mark of any system, or if that is not known.

    `reached_kinds` has the answers for kinds. That kinds create each other in a circle is reported
    elsewhere.
    """
    if any(addition.labels_from is not None for addition in pods.adds):
        return True
    for row in table.rows:
        for mark in row.marks:
            for text in (
                addition.labels[mark.key] for addition in pods.adds if mark.key in addition.labels
            ):
                written = all(isinstance(piece, str) for piece in text)
                if mark.value is None or not written or "".join(map(str, text)) == mark.value:
                    return True
    if pods.like is None:
        return False
    key = (pods.like.group, pods.like.kind)
    if key not in reached_kinds:
        reached_kinds[key] = True
        kinds = table.template_kinds.get(key, ())
        reached_kinds[key] = not kinds or all(
            _reached(template_pods, table, reached_kinds) for template_pods in kinds[-1].pods
        )
    return reached_kinds[key]
