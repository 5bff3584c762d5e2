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
        values = given if isinstance(given, dict) else {}
        texts = [text for name in cls._fields if isinstance(text := values.get(name), str)]
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
    given_nodes = nodes or None
    if texts.nodes.strip() and not nodes:
        notes.append("The nodes' text has no node: which nodes admit the pods is not known.")
    marks = [
        Mark("policies", finding.line, finding.column, finding.severity, finding.text)
        for finding in condensed(judged.findings)
    ]
    if not documents.documents and not documents.errors:
        notes.append("There are no policies here: pods stay as they are.")
    objects = list(objects_in("manifests.yaml", texts.manifests.encode(), problems))
    groups: list[Group] = []
    replica_groups: list[Replicas] = []
    change = None
    if judged.policies and not any(finding.is_fault for finding in judged.findings):
        world = with_nodes(unread_world(judged.policies), given_nodes)
        offline = offline_of(world, objects, problems, _NAMESPACE)
        replica_groups = decisions(offline, problems)
        notes += [*offline.describe_unknown("the manifests"), *unknown_facts(replica_groups)]
        classes = list(judged.policies.classes.values())
        titles = {node.name: title_of(node, classes) for node in nodes}
        groups = [_group(replicas, nodes, titles) for replicas in replica_groups[:MOST_SHOWN]]
        change = _change(question.before, offline)
        notes += [] if replica_groups or problems else ["No object makes pods."]
    else:
        notes.append("A set with these errors is not served: correct them to see the pods.")
    for line in dict.fromkeys(problems):
        if mark := _mark(line):
            marks.append(mark)
        else:
            notes.append(line)
    valid = {node.name for node in nodes}
    written = [
        node_object
        for node_object in node_objects
        if node_object.kind == "Node" and node_object.name in valid
    ]
    cases = [
        _case(replicas, group.result)
        for replicas, group in zip(replica_groups, groups, strict=False)
    ]
    test = _policy_test(cases, written) if cases else ""
    if len(marks) > MOST_MARKS:
        notes.append(f"and {len(marks) - MOST_MARKS:,} more findings, which are not shown")
    return Answer(
        marks[:MOST_MARKS], notes, groups, max(0, len(replica_groups) - MOST_SHOWN), test, change
    )


@lru_cache(maxsize=2)
def _judged(policies: str, nodes: str, now: datetime) -> _Judged:
    """Judge the policies, which stay the same while somebody writes a manifest."""
    problems: list[str] = []
    objects = list(objects_in("nodes.yaml", nodes.encode(), problems))
    given_nodes = nodes_among(objects, problems)
    documents = policy_documents.parse({"policies.yaml": policies.encode()})
    judged = judge_set(
        documents, AT_ONCE, now=now, nodes=given_nodes or None, compiler=_COMPILER, memory=_MEMORY
    )
    return _Judged(documents, judged, objects, given_nodes, problems)


def _change(before: str, offline: Offline) -> Change | None:
    """Compare with a set before; None if one of both, or a pod, cannot be evaluated."""
    try:
        old = load({"policies.yaml": before.encode()}).policies
        if old.hash == offline.policies.hash:
            return None
        pod_report = difference_report.report(
            Judge(old, offline.world).of_templates(offline.templates)
        )
    except (InvalidDocuments, UnreadableInput):
        return None
    world = offline.world
    count = None if world.nodes is None else len(world.nodes)
    outcome = report.outcome_of(("before", old), ("now", world.policies), count, [], [], pod_report)
    if not outcome.pods.total:
        return None
    parts = [report.shown(change, count) for change in outcome.changes[:MOST_SHOWN]]
    return Change(outcome.answer, parts, max(0, len(outcome.changes) - MOST_SHOWN))


def _policy_test(cases: Sequence[JsonObject], nodes: Sequence[Object]) -> str:
    """Return the cases as a PolicyTest, for a file beside the policies."""
    document: dict[str, Any] = {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "PolicyTest",
        "policies": ["policies.yaml"],
    }
    if nodes:
        document["nodes"] = [_node_of_test(node.value) for node in nodes]
    document["tests"] = cases
    return yaml_text(document)


def _node_of_test(node: JsonObject) -> JsonObject:
    fields = {
        "name": node["metadata"]["name"],
        "labels": node["metadata"].get("labels"),
        "taints": (node.get("spec") or {}).get("taints"),
        "allocatable": (node.get("status") or {}).get("allocatable"),
    }
    return {key: value for key, value in fields.items() if value}


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
    expected["policies"] = [
        policy_answer.name for policy_answer in result.policies if policy_answer.answer == "applies"
    ]
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
    match = _LINE.fullmatch(line)
    editor = match and _EDITORS.get(match["file"])
    if not (match and editor):
        return None
    return Mark(editor, int(match["line"]), int(match["column"]), "error", match["text"])


def _group(replicas: Replicas, nodes: Sequence[Node], titles: Mapping[str, str]) -> Group:
    result = result_of(replicas)
    last = result.nodes and (result.nodes.after or result.nodes.before)
    return Group(
        subject=replicas.subject,
        word=word_of(replicas),
        result=result,
        diff=list(diff_lines(replicas)),
        shut=[(exclusion.condition, len(exclusion.nodes)) for exclusion in last.shut]
        if last
        else (),
        pools=list(islice(pools(nodes, titles, last), MOST_POOLS)) if last else (),
    )
