"""The playground: policies, manifests and nodes as text, and what happens to the pods."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import orjson

from webhook import names
from webhook.comparison import difference_report
from webhook.errors import InvalidDocuments, UnreadableInput
from webhook.evaluation.answer import WORDS, answer_of, word_of
from webhook.evaluation.pod_faults import PodFaults
from webhook.evaluation.result import result_of
from webhook.judgement.set_judgement import judge_set, together
from webhook.judgement.together.warnings import AT_ONCE, Budget, Memory
from webhook.placement.nodes import NodeKinds
from webhook.policy import policy_documents
from webhook.policy.findings import Kind, condensed
from webhook.policy.load import load
from webhook.policy.policy_set import Compiler
from webhook.questions.decisions import decisions, unknown_facts
from webhook.questions.diff import report
from webhook.questions.diff.question import Judge
from webhook.questions.kept_decisions import KeptDecisions
from webhook.questions.kept_documents import KeptDocuments
from webhook.questions.made_tests import policy_test
from webhook.questions.objects import objects_in
from webhook.questions.offline import nodes_among, offline_of, unread_world, with_nodes
from webhook.text.changes import diff_lines
from webhook.ui.pools import pools, title_of
from webhook.workloads.object import ANSWERED, Object

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from webhook.evaluation.replicas import Replicas
    from webhook.evaluation.result import PodsResult
    from webhook.judgement.set_judgement import SetJudgement
    from webhook.placement.nodes import Node
    from webhook.policy.findings import Severity
    from webhook.policy.policy_documents import PolicyDocument
    from webhook.policy.policy_set import PolicySet
    from webhook.policy.reader import Documents
    from webhook.questions.diff.report import ShownChange
    from webhook.questions.offline import Offline
    from webhook.ui.pools import Pool

Editor: TypeAlias = Literal["policies", "manifests", "nodes"]
# Bytes of all texts together.
MOST_BYTES: Final = 512 * 1024
# Groups of pods that are shown, and open; pools of nodes of each; findings.
MOST_SHOWN: Final = 100
MOST_OPEN: Final = 12
MOST_POOLS: Final = 12
MOST_MARKS: Final = 500
# Up to so many documents, or documents times nodes, are checked against each other at each key;
# else with a budget of some milliseconds.
_FEW_DOCUMENTS: Final = 20
_FEW: Final = 5_000
_AT_A_KEY: Final = Budget(2_500, 4_000)
# What is asked beside the answer to a key, and may take seconds.
PARTS: Final = ("", "change", "test", "findings")
_EDITORS: Final[dict[str, Editor]] = {
    f"{name}.yaml": name for name in ("policies", "manifests", "nodes")
}
_LINE: Final = re.compile(
    r"(?P<file>[a-z]+\.yaml):(?P<line>\d+):(?P<column>\d+): (?P<text>.*)", re.DOTALL
)
_NAMESPACE: Final = "default"
# What was made of the policies before: most of them are the same in the next question.
_TITLES: dict[tuple[str, bytes, str], dict[str, str]] = {}
_FAULTS: Final = PodFaults()
_COMPILER: Final = Compiler()
_MEMORY: Final = Memory()
_DECISIONS: Final = KeptDecisions()


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
    """Texts, and the policies that they are compared with.

    given_nodes: Nodes of a cluster as JSON, which count if the text has none. opened: the subjects
    of the groups that are open; None: the first one is. part: one of
    PARTS; without one, what a key asks for.
    """

    texts: Texts
    before: str
    given_nodes: bytes = b""
    opened: tuple[str, ...] | None = None
    part: str = ""

    @classmethod
    def read(cls, body: bytes | bytearray, before: str, given_nodes: bytes) -> Question:
        """Parse a JSON object with the texts, and what is asked of them. Raises ValueError."""
        texts = Texts.read(body)
        values = orjson.loads(body)
        opened = values.get("opened")
        if opened is not None and not (
            isinstance(opened, list) and all(isinstance(subject, str) for subject in opened)
        ):
            raise ValueError("opened: want a list of texts")
        part = values.get("part") or ""
        if part not in PARTS:
            raise ValueError(f"part: want one of {', '.join(PARTS[1:])}, or none")
        return cls(texts, before, given_nodes, None if opened is None else tuple(opened), part)


class Mark(NamedTuple):
    """A finding at a place in an editor. Lines and columns count from 1."""

    editor: Editor
    line: int
    column: int
    severity: Severity
    text: str


class Details(NamedTuple):
    """Why pods of one object with equal decisions are where they are.

    diff: sign and text of the lines of their template, before and after. shut: how many nodes do
    not admit them, by the condition. others: how many policies do not match.
    """

    result: PodsResult
    diff: Sequence[tuple[str, str]]
    shut: Sequence[tuple[str, int]]
    pools: Sequence[Pool]
    more_pools: int
    others: int


class Group(NamedTuple):
    """Pods of one object with equal decisions; `details` if they are open."""

    subject: str
    word: str
    answer: str
    pods: int
    details: Details | None


class Change(NamedTuple):
    """What the policies change. more: how many parts are not shown."""

    answer: str
    parts: Sequence[ShownChange]
    more: int


class Answer(NamedTuple):
    """What is shown, the worst first.

    verdict: how many pods become what. more: how many groups are not shown. whole: whether
    the marks have all findings; else the part `findings` has. differs: whether the policies are
    others than before. test, change: the parts of these names.
    """

    marks: Sequence[Mark] = ()
    notes: Sequence[str] = ()
    verdict: Sequence[tuple[str, int]] = ()
    groups: Sequence[Group] = ()
    more: int = 0
    whole: bool = True
    differs: bool = False
    test: str = ""
    change: Change | None = None


class _Judged(NamedTuple):
    """The policies and nodes. whole: whether the policies were checked against each other and
    against the nodes."""

    documents: Documents[PolicyDocument]
    judgement: SetJudgement
    node_objects: Sequence[Object]
    nodes: Sequence[Node]
    titles: Mapping[str, str]
    problems: Sequence[str]
    whole: bool


class _Evaluated(NamedTuple):
    """placed: returns a message about the manifests with the lines of their text."""

    judged: _Judged
    marks: Sequence[Mark]
    notes: Sequence[str]
    offline: Offline | None
    groups: Sequence[Replicas]
    placed: Callable[[str], str]


def answer(question: Question) -> Answer:
    """Return what happens to the pods of the manifests, and every finding about the texts."""
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    # Only exceptions depend on the time.
    now = now if names.EXCEPTION_KIND in question.texts.policies else now.replace(minute=0)
    whole = question.part == "findings"
    evaluated = _evaluated(question.texts, question.given_nodes, now, whole=whole)
    offline, groups = evaluated.offline, evaluated.groups
    if question.part == "test":
        judged = evaluated.judged
        valid = {node.name for node in judged.nodes}
        nodes = [
            node.value for node in judged.node_objects if node.kind == "Node" and node.name in valid
        ]
        test = policy_test(offline, groups[:MOST_SHOWN], nodes) if offline and groups else ""
        return Answer(test=test)
    if question.part == "change":
        return Answer(change=_change(question.before, offline) if offline else None)
    verdict = Counter[str]()
    for replicas in groups:
        verdict[word_of(replicas)] += replicas.count
    shown = groups[:MOST_SHOWN]
    opened = question.opened
    if opened is None or (opened and not any(group.subject in opened for group in shown)):
        # The worst, unless a person has closed it.
        opened = tuple(replicas.subject for replicas in shown[:1])
    return Answer(
        marks=evaluated.marks[:MOST_MARKS],
        notes=evaluated.notes,
        verdict=[(word, verdict[word]) for word in WORDS if verdict[word]],
        groups=[_group(replicas, evaluated, opened[:MOST_OPEN]) for replicas in shown],
        more=len(groups) - len(shown),
        whole=evaluated.judged.whole or offline is None,
        differs=offline is not None and _is_other(question.before, offline),
    )


@lru_cache(maxsize=2)
def _evaluated(texts: Texts, given_nodes: bytes, now: datetime, *, whole: bool) -> _Evaluated:
    """Evaluate the texts, of which a person may then open one part after the other."""
    notes: list[str] = []
    problems: list[str] = []
    judged = _judged(texts.policies, texts.nodes, given_nodes, now, whole=whole)
    problems += judged.problems
    given = judged.nodes or None
    if texts.nodes.strip() and not (judged.nodes or given_nodes):
        notes.append("The nodes' text has no node: which nodes admit the pods is not known.")
    marks = [
        Mark("policies", finding.line, finding.column, finding.severity, finding.text)
        for finding in condensed(judged.judgement.findings)
        if judged.whole or finding.kind is not Kind.NOT_CHECKED
    ]
    if not judged.documents.documents and not judged.documents.errors:
        notes.append("There are no policies here: pods stay as they are.")
    read = _MANIFEST_TEXTS.read(texts.manifests)
    objects = [manifest for manifests, _ in read.documents for manifest in manifests]
    problems += [line for _, lines in read.documents for line in lines]
    groups: list[Replicas] = []
    offline = None
    policies = judged.judgement.policies
    if policies and not any(finding.is_fault for finding in judged.judgement.findings):
        world = replace(with_nodes(unread_world(policies), given), faults=_FAULTS, now=now)
        offline = offline_of(world, objects, problems, _NAMESPACE)
        groups = decisions(offline, problems, _DECISIONS)
        notes += [*offline.describe_unknown("the manifests"), *unknown_facts(groups)]
        notes += [] if groups or problems else ["No object makes pods."]
        words = list(WORDS)
        groups.sort(key=lambda replicas: words.index(word_of(replicas)))
    else:
        notes.append("A set with these errors is not served: correct them to see the pods.")
    for line in dict.fromkeys(map(read.placed, problems)):
        if mark := _mark(line):
            marks.append(mark)
        else:
            notes.append(line)
    if len(marks) > MOST_MARKS:
        notes.append(f"and {len(marks) - MOST_MARKS:,} more findings, which are not shown")
    return _Evaluated(judged, marks, list(map(read.placed, notes)), offline, groups, read.placed)


@lru_cache(maxsize=2)
def _judged(
    policies: str, nodes: str, given_nodes: bytes, now: datetime, *, whole: bool
) -> _Judged:
    """Judge the policies, which stay the same while somebody writes a manifest."""
    objects, nodes_in_text, problems = _nodes(nodes, given_nodes)
    read = _POLICY_TEXTS.read(policies)
    documents = together(read.documents)
    cost = len(documents.documents) * max(1, len(nodes_in_text))
    whole = whole or cost <= _FEW or len(documents.documents) <= _FEW_DOCUMENTS
    judged = judge_set(
        documents,
        AT_ONCE if whole else _AT_A_KEY,
        now=now,
        nodes=(nodes_in_text or None) if whole else None,
        compiler=_COMPILER,
        memory=_MEMORY,
    )
    judged = judged._replace(findings=tuple(sorted(map(read.finding, judged.findings))))
    titles: dict[str, str] = {}
    if judged.policies:
        titles = _titles(nodes, given_nodes, judged.policies)
    return _Judged(documents, judged, objects, nodes_in_text, titles, problems, whole)


def _titles(nodes: str, given_nodes: bytes, policies: PolicySet) -> dict[str, str]:
    """Return the pool of each node, which depends on the classes alone."""
    like = (nodes, given_nodes, repr(policies.classes))
    if like not in _TITLES:
        classes, (_, read_nodes, _) = [*policies.classes.values()], _nodes(nodes, given_nodes)
        _TITLES.clear()
        _TITLES[like] = {node.name: title_of(node, classes) for node in read_nodes}
    return _TITLES[like]


def _policies_of(file: str, text: str) -> Documents[PolicyDocument]:
    return policy_documents.parse({file: text.encode()})


def _objects_of(file: str, text: str) -> tuple[Sequence[Object], Sequence[str]]:
    problems: list[str] = []
    return list(objects_in(file, text.encode(), problems)), problems


@lru_cache(maxsize=2)
def _nodes(text: str, given: bytes) -> tuple[Sequence[Object], Sequence[Node], Sequence[str]]:
    """Return the nodes of the text, else those that are given, and what is wrong with the text."""
    read = _NODE_TEXTS.read(text)
    objects = [node for nodes, _ in read.documents for node in nodes]
    problems = [line for _, lines in read.documents for line in lines]
    nodes = nodes_among(objects, problems)
    if not nodes and given:
        objects = [Object(ANSWERED, raw) for raw in orjson.loads(given)]
        nodes = nodes_among(objects, [])
    return objects, NodeKinds(nodes), list(map(read.placed, problems))


_POLICY_TEXTS: Final = KeptDocuments("policies.yaml", _policies_of)
_MANIFEST_TEXTS: Final = KeptDocuments("manifests.yaml", _objects_of)
_NODE_TEXTS: Final = KeptDocuments("nodes.yaml", _objects_of)


@lru_cache(maxsize=1)
def _before(policies: str) -> PolicySet | None:
    """Return the set before; None if it does not compile."""
    try:
        return load({"policies.yaml": policies.encode()}).policies
    except (InvalidDocuments, UnreadableInput):
        return None


def _is_other(before: str, offline: Offline) -> bool:
    old = _before(before)
    return old is not None and old.hash != offline.policies.hash


def _change(before: str, offline: Offline) -> Change | None:
    """Compare with a set before; None if one of both, or a pod, cannot be evaluated."""
    old = _before(before)
    if old is None or old.hash == offline.policies.hash:
        return None
    try:
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


def _mark(line: str) -> Mark | None:
    """Return the mark of a line about a file: `manifests.yaml:3:5: Job/a: spec: …`."""
    match = _LINE.fullmatch(line)
    editor = match and _EDITORS.get(match["file"])
    if not (match and editor):
        return None
    return Mark(editor, int(match["line"]), int(match["column"]), "error", match["text"])


def _group(replicas: Replicas, evaluated: _Evaluated, opened: Collection[str]) -> Group:
    details, judged, offline = None, evaluated.judged, evaluated.offline
    if replicas.subject in opened and offline:
        # A kept answer does not have the policies that do not match as they are now.
        evaluation = offline.world.decided(replicas.arrival)
        details = details_of(replace(replicas, evaluation=evaluation), judged.nodes, judged.titles)
        warnings = list(map(evaluated.placed, details.result.warnings))
        result = details.result.model_copy(update={"warnings": warnings})
        details = details._replace(result=result)
    return Group(
        subject=replicas.subject,
        word=word_of(replicas),
        answer=answer_of(replicas),
        pods=replicas.count,
        details=details,
    )


def details_of(replicas: Replicas, nodes: Sequence[Node], titles: Mapping[str, str]) -> Details:
    """Return what an open group shows."""
    result = result_of(replicas)
    last = result.nodes and (result.nodes.after or result.nodes.before)
    rows = list(pools(nodes, titles, last)) if last else []
    matching = [policy for policy in result.policies if policy.answer != "no"]
    return Details(
        result=result.model_copy(update={"policies": matching, "nodes": None}),
        diff=[(line[:1], line) for line in list(diff_lines(replicas))[2:]],
        shut=[(shut.condition, len(shut.nodes)) for shut in last.shut] if last else (),
        pools=rows[:MOST_POOLS],
        more_pools=max(0, len(rows) - MOST_POOLS),
        others=len(result.policies) - len(matching),
    )
