"""Warnings about documents RunSource whose marks are on other pods than their author means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.policy.added_sources import marks_of, own_system, sources_among, table_of
from webhook.policy.findings import Kind
from webhook.shortening import first_few

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.policy.findings import Finding
    from webhook.policy.policy_documents import Document
    from webhook.policy.run_source import RunSource
    from webhook.sources.kind_model import Pods
    from webhook.sources.marks import Mark, Source
    from webhook.sources.table import SourceTable

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
# Kinds that create each other in a circle are an error that is reported elsewhere.
_DEEPEST: Final = 8


def source_warnings(documents: Sequence[Document]) -> Iterator[Finding]:
    """Yield the warnings about the marks of sources."""
    table = table_of(documents)
    for each in sources_among(documents):
        yield from _same_marks(each, table)
        yield from _general_marks(each)
        yield from _missed_pods(each, table)


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


def _meet(one: Mark, other: Mark) -> bool:
    """Return whether some label is both marks."""
    same = one.value == other.value or None in (one.value, other.value)
    return one.key == other.key and not other.namespace and same


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
    for number, kind in enumerate(own_system(document).kinds):
        for position, pods in enumerate(() if kind.reusable else kind.pods):
            if not pods.unmarked and not _reached(pods, table):
                named = first_few(list(map(str, marks)), _NAMED)
                what = (
                    f"no mark is among the labels that these pods of a {kind.kind} get by adds, so "
                    f"they are part of a run only if their author writes one ({named}); add one to "
                    "adds if the system writes it, or explain it in unmarked"
                )
                path = ("spec", "kinds", number, "pods", position)
                yield document.finding(path, what, "warning", kind=Kind.PODS_WITHOUT_MARK)


def _reached(pods: Pods, table: SourceTable, depth: int = 0) -> bool:
    """Return True if these pods get a mark of any system, or if that is not known."""
    if any(each.labels_from is not None for each in pods.adds):
        return True
    for row in table.rows:
        for mark in row.marks:
            for text in (each.labels[mark.key] for each in pods.adds if mark.key in each.labels):
                written = all(isinstance(piece, str) for piece in text)
                if mark.value is None or not written or "".join(map(str, text)) == mark.value:
                    return True
    if pods.like is None or depth == _DEEPEST:
        return pods.like is not None
    kinds = table.template_kinds.get((pods.like.group, pods.like.kind), ())
    return not kinds or all(_reached(each, table, depth + 1) for each in kinds[-1].pods)
