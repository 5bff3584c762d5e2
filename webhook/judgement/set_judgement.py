"""All findings about a set of policies, of documents or of a cluster's objects.

`fairlead check`, the status of each object, `fairlead doctor` and the answer to a write report
these findings. With an error a set does not load. With a fault, a stored set still serves.
"""

from __future__ import annotations

from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import orjson

from webhook.errors import InvalidDocuments
from webhook.evaluation.plugins import UNREAD, inputs_of
from webhook.judgement.together.warnings import Memory, faults, warnings
from webhook.policy import policy_documents, yaml_tree
from webhook.policy.added_sources import ship_already
from webhook.policy.exceptions import of_time
from webhook.policy.feasibility import feasibility, missing_values
from webhook.policy.findings import Finding, Kind
from webhook.policy.load import Loaded, compiled
from webhook.policy.policy_set import Compiler
from webhook.policy.reader import Documents
from webhook.policy.refused_pods import missing_classes
from webhook.policy.yaml_text import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from webhook.judgement.together.warnings import Budget, Prepared
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject
    from webhook.policy.feasibility import Concern, Feasibility
    from webhook.policy.policy_documents import Document, PolicyDocument
    from webhook.policy.policy_set import PolicySet

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
    budget: Budget,
    *,
    now: datetime | None = None,
    nodes: Sequence[Node] | None = None,
    classes: Mapping[str, Mapping[str, JsonObject]] | None = None,
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
    compiler: Compiler | None = None,
    memory: Memory | None = None,
) -> SetJudgement:
    """Return all findings about the documents; `budget` bounds the checks of policies together.

    Without `now` there are no findings that depend on the time, without `nodes` none about nodes.
    `classes` are objects of the cluster by kind and name: PriorityClasses, for `missing_classes`,
    RuntimeClasses and DeviceClasses. `namespaces` are labels by name.
    `compiler` and `memory` may remember what they made of the set before this one.
    """
    try:
        policies, compiler_findings = compiled(documents, compiler)
    except InvalidDocuments as error:
        return SetJudgement(None, tuple(e for e in error.findings if isinstance(e, Finding)))
    inputs = inputs_of(classes)
    ready = (memory or Memory()).prepare(documents.documents, policies.classes, inputs)
    findings = [
        *compiler_findings,
        *warnings(ready, nodes, budget),
        *_faults_of_documents(documents.documents),
    ]
    findings += missing_classes(documents.documents, classes or {})
    findings += placed(missing_values(policies, namespaces or {}), documents.documents)
    if now is not None:
        findings += of_time(documents.documents, now)
    if nodes is None:
        return SetJudgement(policies, tuple(sorted(findings)), ready)
    feasible = feasibility(policies, nodes, inputs.runtime_classes, inputs.devices, namespaces)
    findings += placed(feasible.concerns, documents.documents)
    return SetJudgement(policies, tuple(sorted(findings)), ready, feasible)


def _faults_of_documents(documents: Sequence[Document]) -> Iterator[Finding]:
    """Faults that a document has by itself."""
    yield from ship_already(documents)
    for document in documents:
        if reason := size_fault(document.derive(count_bytes)):
            yield document.finding((), reason, about=document.model.name, kind=Kind.TOO_LARGE)


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
    document_by_key: dict[tuple[str, str], Document] = {
        (document.model.kind, document.model.name): document for document in documents
    }
    for concern in concerns:
        yield document_by_key[concern.kind, concern.name].finding(
            concern.path, concern.message, concern.severity, kind=concern.about
        )


class Served(NamedTuple):
    """A set that is to serve, with the warnings of its documents, and the faults it serves with.

    documents: of which it is made, until they are checked
    faults: None until then; a check takes many times as long as to compile the set
    """

    policies: PolicySet
    warnings: tuple[Finding, ...]
    documents: Sequence[Document]
    faults: tuple[Finding, ...] | None = None

    def checked(self, memory: Memory) -> Served:
        """Return the set with its faults."""
        ready = memory.prepare(self.documents, self.policies.classes, UNREAD)
        findings = [*faults(ready), *_faults_of_documents(self.documents)]
        return self._replace(documents=(), faults=tuple(sorted(findings)))


def load_served(documents: Documents[PolicyDocument]) -> Served:
    """Return the set of the documents, checked. Raises InvalidDocuments, though not for faults."""
    return _load_unchecked(documents).checked(Memory())


def _load_unchecked(
    documents: Documents[PolicyDocument], compiler: Compiler | None = None
) -> Served:
    loaded = compiled(documents, compiler)
    return Served(loaded.policies.indexed(), loaded.warnings, documents.documents)


def load_sound(files: Mapping[str, bytes]) -> PolicySet:
    """Return the set of files that is to serve. Raises InvalidDocuments, for faults too.

    A folder with faults does not replace a set that serves, and they cannot be written to a
    cluster: no answer may be made of them as if they were in force.
    """
    served_set = load_served(policy_documents.parse(files))
    if served_set.faults:
        raise InvalidDocuments([*served_set.warnings, *served_set.faults])
    return served_set.policies


_Read: TypeAlias = "tuple[bytes, Documents[PolicyDocument]]"
# An object has no lines.
_NOWHERE: Final = (0, 0)


class Objects:
    """Compiles the policy sets of a cluster's objects, one after the other.

    Parsed objects and compiled policies are cached until their text changes: a write changes one
    policy of a thousand.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Read] = {}
        self._compiler = Compiler()
        self._memory = Memory()

    def load(self, objects: Mapping[str, bytes]) -> Loaded:
        """Return the policy set of whole objects as JSON text, by resource and name.

        Names are as in `placementpolicies/spot`: they are the places of what is found. The hash is
        that of the same documents in files. Raises InvalidDocuments with every finding, warnings
        included, if one of them is an error.
        """
        return compiled(self.documents(objects), self._compiler)

    def judge(
        self,
        objects: Mapping[str, bytes],
        budget: Budget,
        now: datetime,
        classes: Mapping[str, Mapping[str, JsonObject]] | None = None,
    ) -> SetJudgement:
        """Return all findings about the objects; `classes` are those of judge_set."""
        return judge_set(
            self.documents(objects),
            budget,
            now=now,
            classes=classes,
            compiler=self._compiler,
            memory=self._memory,
        )

    def served(self, objects: Mapping[str, bytes]) -> Served:
        """Return the set of the objects, not checked. Raises as `load` does."""
        return _load_unchecked(self.documents(objects), self._compiler)

    def checked(self, served: Served) -> Served:
        """Return the set with its faults. One thread may call this beside one that compiles."""
        return served.checked(self._memory)

    def documents(self, objects: Mapping[str, bytes]) -> Documents[PolicyDocument]:
        """Return the objects' texts as documents; safe in any thread."""
        cache = self._known
        self._known = current = {
            place: old
            if (old := cache.get(place)) and (old[0] is text or old[0] == text)
            else (text, read_object(place, text))
            for place, text in sorted(objects.items())
        }
        return together([documents for _, documents in current.values()])


def load_objects(objects: Mapping[str, bytes]) -> Loaded:
    """Return the policy set of objects that are read only once: see Objects.load."""
    return Objects().load(objects)


def read_object(place: str, text: bytes) -> Documents[PolicyDocument]:
    """Read one object; never raises, whatever is in it."""
    try:
        root = _node(orjson.loads(text), MAX_DEPTH)
    except ValueError as error:
        return Documents((), (Finding(place, *_NOWHERE, "", str(error)),))
    return policy_documents.parse_object(place, root)


def together(parts: list[Documents[PolicyDocument]]) -> Documents[PolicyDocument]:
    """Return the documents of all parts, without those of other programs."""
    documents, findings, broken = (
        chain.from_iterable(map(attrgetter(part), parts))
        for part in ("documents", "findings", "broken")
    )
    return Documents(tuple(documents), tuple(findings), frozenset(broken))


def _node(value: Any, depth: int) -> yaml_tree.Node:
    """Return a JSON value as a YAML tree. Raises ValueError if it is nested too deeply."""
    if not depth:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    match value:
        case dict():
            entries = {key: (_scalar(key), _node(child, depth - 1)) for key, child in value.items()}
            return yaml_tree.Mapping(_NOWHERE, entries)
        case list():
            return yaml_tree.Sequence(_NOWHERE, [_node(item, depth - 1) for item in value])
        case _:
            return _scalar(value)


def _scalar(value: str | float | bool | None) -> yaml_tree.Scalar:
    if isinstance(value, str):
        return yaml_tree.Scalar(_NOWHERE, value, value, quoted=True)
    return yaml_tree.Scalar(_NOWHERE, value, orjson.dumps(value).decode())
