"""All findings about a set of policies.

`fairlead check`, the status of each object, `fairlead doctor` and the answer to a write report
these findings. With an error a set does not load. With a fault, a stored set still serves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.errors import InvalidDocuments
from webhook.evaluation.plugins import inputs_of
from webhook.judgement.together.warnings import Memory, faults, warnings
from webhook.policy import policy_documents
from webhook.policy.added_sources import ship_already
from webhook.policy.exceptions import of_time
from webhook.policy.feasibility import feasibility
from webhook.policy.findings import Finding, Kind
from webhook.policy.load import compiled
from webhook.policy.refused_pods import missing_classes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from webhook.judgement.together.warnings import Prepared
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject
    from webhook.policy.feasibility import Concern, Feasibility
    from webhook.policy.policy_documents import Document, PolicyDocument
    from webhook.policy.policy_set import Compiler, PolicySet
    from webhook.policy.reader import Documents

# Bytes of an object as the policy set reads it. An object with an error in every part takes a
# second and a hundred times its bytes per 20,000 bytes; the largest shipped one has 3,000.
MOST_BYTES: Final = 64 * 1024


class SetJudgement(NamedTuple):
    """The findings, ordered by place.

    policies:    None if the documents do not compile
    ready:       the policies, prepared for checks against each other; None without a set
    feasibility: None without nodes, or without a set
    """

    policies: PolicySet | None
    findings: tuple[Finding, ...]
    ready: Prepared | None = None
    feasibility: Feasibility | None = None


def judge_set(
    documents: Documents[PolicyDocument],
    *,
    now: datetime | None = None,
    nodes: Sequence[Node] | None = None,
    classes: Mapping[str, Mapping[str, JsonObject]] | None = None,
    compiler: Compiler | None = None,
    memory: Memory | None = None,
) -> SetJudgement:
    """Return all findings about the documents.

    Without `now` there are no findings that depend on the time, without `nodes` none about nodes.
    `classes` are objects of the cluster by kind and name: PriorityClasses, for `missing_classes`,
    and RuntimeClasses.
    `compiler` and `memory` may remember what they made of the set before this one.
    """
    try:
        policies, found = compiled(documents, compiler)
    except InvalidDocuments as error:
        return SetJudgement(None, tuple(e for e in error.findings if isinstance(e, Finding)))
    runtime = inputs_of(classes).runtime_classes
    ready = (memory or Memory()).prepare(documents.documents, policies.classes, runtime)
    findings = [*found, *warnings(ready, nodes), *_faults_of_documents(documents.documents)]
    findings += missing_classes(documents.documents, classes or {})
    if now is not None:
        findings += of_time(documents.documents, now)
    if nodes is None:
        return SetJudgement(policies, tuple(sorted(findings)), ready)
    feasible = feasibility(policies, nodes, runtime)
    findings += placed(feasible.concerns, documents.documents)
    return SetJudgement(policies, tuple(sorted(findings)), ready, feasible)


def _faults_of_documents(documents: Sequence[Document]) -> Iterator[Finding]:
    """Faults that a document has by itself."""
    yield from ship_already(documents)
    for each in documents:
        if reason := size_fault(count_bytes(each)):
            yield each.finding((), reason, about=each.model.name, kind=Kind.TOO_LARGE)


def size_fault(count: int) -> str:
    """Return why an object with so many bytes is not written; no text if it may be."""
    if count <= MOST_BYTES:
        return ""
    return f"the object has {count} bytes; at most {MOST_BYTES} are allowed"


def count_bytes(document: Document) -> int:
    """Count the bytes of the document as an object: JSON, of the metadata the name alone."""
    model = document.model
    metadata = {name: True for name in type(model.metadata).model_fields if name != "name"}
    text = model.model_dump_json(by_alias=True, exclude_unset=True, exclude={"metadata": metadata})
    return len(text.encode())


def placed(concerns: Iterable[Concern], documents: Iterable[Document]) -> Iterator[Finding]:
    """Yield the concerns as findings, each at its place."""
    found: dict[tuple[str, str], Document] = {
        (each.model.kind, each.model.name): each for each in documents
    }
    for each in concerns:
        yield found[each.kind, each.name].finding(
            each.path, each.message, each.severity, kind=each.about
        )


class Served(NamedTuple):
    """A set that is to serve, with the warnings of its documents, and the faults it serves with."""

    policies: PolicySet
    warnings: tuple[Finding, ...]
    faults: tuple[Finding, ...]


def load_served(
    documents: Documents[PolicyDocument],
    compiler: Compiler | None = None,
    memory: Memory | None = None,
) -> Served:
    """Return the set of the documents. Raises InvalidDocuments, though not for faults."""
    loaded = compiled(documents, compiler)
    ready = (memory or Memory()).prepare(documents.documents, loaded.policies.classes, {})
    found = [*faults(ready.policies), *_faults_of_documents(documents.documents)]
    return Served(loaded.policies, loaded.warnings, tuple(sorted(found)))


def load_sound(files: Mapping[str, bytes]) -> PolicySet:
    """Return the set of files that is to serve. Raises InvalidDocuments, for faults too.

    A folder with faults does not replace a set that serves, and they cannot be written to a
    cluster: no answer may be made of them as if they were in force.
    """
    found = load_served(policy_documents.parse(files))
    if found.faults:
        raise InvalidDocuments([*found.warnings, *found.faults])
    return found.policies
