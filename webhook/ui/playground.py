"""The playground: policies, manifests and nodes as text, and what happens to the pods."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import orjson

from webhook.comparison import difference_report
from webhook.errors import InvalidDocuments, UnreadableInput
from webhook.evaluation.answer import word_of
from webhook.evaluation.result import result_of
from webhook.judgement.set_judgement import judge_set
from webhook.judgement.together.warnings import AT_ONCE, Memory
from webhook.policy import policy_documents
from webhook.policy.findings import condensed
from webhook.policy.load import load
from webhook.policy.policy_set import Compiler
from webhook.policy_tests.policy_test_model import WITH_REASON, WITHOUT_PLACEMENT
from webhook.questions.decisions import decisions, unknown_facts
from webhook.questions.diff import report
from webhook.questions.diff.question import Judge
from webhook.questions.objects import objects_in
from webhook.questions.offline import nodes_among, offline_of, unread_world, with_nodes
from webhook.sources.kind_model import UNKNOWN
from webhook.text.changes import diff_lines
from webhook.text.yaml_out import yaml_text
from webhook.ui.pools import pools, title_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.evaluation.replicas import Replicas
    from webhook.evaluation.result import PodsResult
    from webhook.judgement.set_judgement import SetJudgement
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Severity
    from webhook.policy.policy_documents import PolicyDocument
    from webhook.policy.reader import Documents
    from webhook.questions.diff.report import ShownChange
    from webhook.questions.offline import Offline
    from webhook.ui.pools import Pool
    from webhook.workloads.object import Object

Editor: TypeAlias = Literal["policies", "manifests", "nodes"]
# Bytes of all texts together.
MOST_BYTES: Final = 512 * 1024
# Groups of pods that are shown; pools of nodes of each; findings.
MOST_SHOWN: Final = 100
MOST_POOLS: Final = 20
MOST_MARKS: Final = 500
_EDITORS: Final[dict[str, Editor]] = {
    f"{name}.yaml": name for name in ("policies", "manifests", "nodes")
}
_LINE: Final = re.compile(
    r"(?P<file>[a-z]+\.yaml):(?P<line>\d+):(?P<column>\d+): (?P<text>.*)", re.DOTALL
)
_NAMESPACE: Final = "default"
# What was made of the policies before: most of them are the same in the next question.
_COMPILER: Final = Compiler()
_MEMORY: Final = Memory()


class Texts(NamedTuple):
    """What the editors have: YAML."""

    policies: str
    manifests: str
    nodes: str

    @classmethod
    def read(cls, body: bytes | bytearray) -> Texts:
        """Parse a JSON object with the texts. Raises ValueError."""
        given = orjson.loads(body)
        known = given if isinstance(given, dict) else {}
        texts = [each for name in cls._fields if isinstance(each := known.get(name), str)]
        if len(texts) < len(cls._fields):
            raise ValueError(f"want an object with texts: {', '.join(cls._fields)}")
        return cls(*texts)


class Question(NamedTuple):
    """Texts, and the policies that they are compared with."""

    texts: Texts
    before: str


class Mark(NamedTuple):
    """A finding at a place in an editor. Lines and columns count from 1."""

    editor: Editor
    line: int
    column: int
    severity: Severity
    text: str


class Group(NamedTuple):
    """Pods of one object with equal decisions.

    diff: lines of their template, before and after. shut: how many nodes do not admit them, by the
    condition.
    """

    subject: str
    word: str
    result: PodsResult
    diff: Sequence[str]
    shut: Sequence[tuple[str, int]]
    pools: Sequence[Pool]


class Change(NamedTuple):
    """What the policies change. more: how many parts are not shown."""

    answer: str
    parts: Sequence[ShownChange]
    more: int


class Answer(NamedTuple):
    """What is shown.

    more: how many groups are not. test: the same question as a PolicyTest. change: what the
    policies change against those before; None if they are the same, or cannot be compared.
    """

    marks: Sequence[Mark]
    notes: Sequence[str]
    groups: Sequence[Group]
    more: int = 0
    test: str = ""
    change: Change | None = None


class _Judged(NamedTuple):
    documents: Documents[PolicyDocument]
    judgement: SetJudgement
    node_objects: Sequence[Object]
    nodes: Sequence[Node]
    problems: Sequence[str]


def answer(question: Question) -> Answer:
    """Return what happens to the pods of the manifests, and every finding about the texts."""
    texts = question.texts
    notes: list[str] = []
    problems: list[str] = []
    minute = datetime.now(UTC).replace(second=0, microsecond=0)
    documents, judged, node_objects, nodes, of_nodes = _judged(texts.policies, texts.nodes, minute)
    problems += of_nodes
    known = nodes or None
    if texts.nodes.strip() and not nodes:
        notes.append("The nodes' text has no node: which nodes admit the pods is not known.")
    marks = [
        Mark("policies", each.line, each.column, each.severity, each.text)
        for each in condensed(judged.findings)
    ]
    if not documents.documents and not documents.errors:
        notes.append("There are no policies here: pods stay as they are.")
    objects = list(objects_in("manifests.yaml", texts.manifests.encode(), problems))
    groups: list[Group] = []
    found: list[Replicas] = []
    change = None
    if judged.policies and not any(each.is_fault for each in judged.findings):
        world = with_nodes(unread_world(judged.policies), known)
        offline = offline_of(world, objects, problems, _NAMESPACE)
        found = decisions(offline, problems)
        notes += [*offline.describe_unknown("the manifests"), *unknown_facts(found)]
        classes = list(judged.policies.classes.values())
        titles = {each.name: title_of(each, classes) for each in nodes}
        groups = [_group(each, nodes, titles) for each in found[:MOST_SHOWN]]
        change = _change(question.before, offline)
        notes += [] if found or problems else ["No object makes pods."]
    else:
        notes.append("A set with these errors is not served: correct them to see the pods.")
    for line in dict.fromkeys(problems):
        if mark := _mark(line):
            marks.append(mark)
        else:
            notes.append(line)
    valid = {each.name for each in nodes}
    written = [each for each in node_objects if each.kind == "Node" and each.name in valid]
    cases = [_case(each, group.result) for each, group in zip(found, groups, strict=False)]
    test = _policy_test(cases, written) if cases else ""
    if len(marks) > MOST_MARKS:
        notes.append(f"and {len(marks) - MOST_MARKS:,} more findings, which are not shown")
    return Answer(marks[:MOST_MARKS], notes, groups, max(0, len(found) - MOST_SHOWN), test, change)


@lru_cache(maxsize=2)
def _judged(policies: str, nodes: str, now: datetime) -> _Judged:
    """Judge the policies, which stay the same while somebody writes a manifest."""
    problems: list[str] = []
    objects = list(objects_in("nodes.yaml", nodes.encode(), problems))
    found = nodes_among(objects, problems)
    documents = policy_documents.parse({"policies.yaml": policies.encode()})
    judged = judge_set(
        documents, AT_ONCE, now=now, nodes=found or None, compiler=_COMPILER, memory=_MEMORY
    )
    return _Judged(documents, judged, objects, found, problems)


def _change(before: str, offline: Offline) -> Change | None:
    """Compare with a set before; None if one of both, or a pod, cannot be evaluated."""
    try:
        old = load({"policies.yaml": before.encode()}).policies
        if old.hash == offline.policies.hash:
            return None
        found = difference_report.report(Judge(old, offline.world).of_templates(offline.templates))
    except (InvalidDocuments, UnreadableInput):
        return None
    world = offline.world
    count = None if world.nodes is None else len(world.nodes)
    outcome = report.outcome_of(("before", old), ("now", world.policies), count, [], found)
    if not outcome.pods.total:
        return None
    parts = [report.shown(each, count) for each in outcome.changes[:MOST_SHOWN]]
    return Change(outcome.answer, parts, max(0, len(outcome.changes) - MOST_SHOWN))


def _policy_test(cases: Sequence[JsonObject], nodes: Sequence[Object]) -> str:
    """Return the cases as a PolicyTest, for a file beside the policies."""
    document: dict[str, Any] = {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "PolicyTest",
        "policies": ["policies.yaml"],
    }
    if nodes:
        document["nodes"] = [_node_of_test(each.value) for each in nodes]
    document["tests"] = cases
    return yaml_text(document)


def _node_of_test(node: JsonObject) -> JsonObject:
    found = {
        "name": node["metadata"]["name"],
        "labels": node["metadata"].get("labels"),
        "taints": (node.get("spec") or {}).get("taints"),
        "allocatable": (node.get("status") or {}).get("allocatable"),
    }
    return {key: value for key, value in found.items() if value}


def _case(replicas: Replicas, result: PodsResult) -> JsonObject:
    """Return the pods and what happens to them as a case of a PolicyTest."""
    arrival = replicas.arrival
    metadata = arrival.pod.get("metadata") or {}
    labels = {
        key: value for key, value in (metadata.get("labels") or {}).items() if value != UNKNOWN
    }
    expected: JsonObject = {"result": result.result}
    if result.result in WITH_REASON:
        expected["reason"] = result.reason
    expected["policies"] = [each.name for each in result.policies if each.answer == "applies"]
    last = result.nodes and (result.nodes.after or result.nodes.before)
    if last and result.result not in WITHOUT_PLACEMENT:
        expected["runsOn"] = last.admitted
    case = {
        "name": replicas.subject,
        "namespace": arrival.namespace,
        "namespaceLabels": dict(arrival.namespace_labels),
        "now": arrival.now and arrival.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "user": arrival.user,
        "pod": {"metadata": {**metadata, "labels": labels}, "spec": arrival.pod.get("spec")},
        "expect": expected,
    }
    return {key: value for key, value in case.items() if value}


def _mark(line: str) -> Mark | None:
    """Return the mark of a line about a file: `manifests.yaml:3:5: Job/a: spec: …`."""
    found = _LINE.fullmatch(line)
    editor = found and _EDITORS.get(found["file"])
    if not (found and editor):
        return None
    return Mark(editor, int(found["line"]), int(found["column"]), "error", found["text"])


def _group(replicas: Replicas, nodes: Sequence[Node], titles: Mapping[str, str]) -> Group:
    result = result_of(replicas)
    last = result.nodes and (result.nodes.after or result.nodes.before)
    return Group(
        subject=replicas.subject,
        word=word_of(replicas),
        result=result,
        diff=list(diff_lines(replicas)),
        shut=[(each.condition, len(each.nodes)) for each in last.shut] if last else (),
        pools=list(islice(pools(nodes, titles, last), MOST_POOLS)) if last else (),
    )
