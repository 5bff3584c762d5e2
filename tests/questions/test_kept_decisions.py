"""What is kept of one question for the next changes no answer, and no place of a finding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from webhook.cli.demo.show import DATA
from webhook.errors import InvalidDocuments
from webhook.evaluation.answer import answer_of, word_of
from webhook.evaluation.result import result_of
from webhook.judgement.set_judgement import together
from webhook.placement.nodes import NodeKinds
from webhook.policy import policy_documents
from webhook.policy.load import compiled
from webhook.policy.policy_documents import PolicyDocument
from webhook.policy.policy_set import Compiler
from webhook.policy.reader import Documents
from webhook.questions.decisions import decisions, unknown_facts
from webhook.questions.kept_decisions import KeptDecisions
from webhook.questions.kept_documents import KeptDocuments
from webhook.questions.objects import objects_in
from webhook.questions.offline import Offline, nodes_among, offline_of, unread_world, with_nodes
from webhook.workloads.object import Object

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def documents_in(name: str) -> list[str]:
    """The documents of an example of `fairlead demo`."""
    return [part for part in (DATA / name).read_text().split("\n---\n") if part.strip()]


def policy(name: str, match: str, rest: str) -> str:
    """A policy as text."""
    return (
        f"apiVersion: fairlead.dev/v1alpha1\nkind: PlacementPolicy\nmetadata: {{name: {name}}}\n"
        f"spec: {{match: {match}, {rest}}}"
    )


SHIPPED = [*documents_in("policies/capacity.yaml"), *documents_in("policies/policies.yaml")]
# Of these a set has one.
VARIANTS = [
    policy("a", match, rest)
    for match in ("{roles: [worker]}", "{podSelector: {matchLabels: {team: x}}}")
    for rest in (
        "defaults: {nodeSelector: {zone: a}}",
        "defaults: {nodeSelector: {zone: b}}",
        "overrides: {labels: {tier: x}}",
        "enforcement: Audit, requirements: {nodeSelector: {zone: b}}",
    )
]
EXCEPTION = """\
apiVersion: fairlead.dev/v1alpha1
kind: PlacementException
metadata: {name: e}
spec:
  policies: [a]
  reason: r
  until: "2030-01-01T00:00:00Z"
  match: {podSelector: {matchLabels: {team: x}}}"""
OTHERS = [
    policy("b", "{replicaIndexes: [1]}", "defaults: {nodeSelector: {zone: b}}"),
    policy("c", "{namespaceSelector: {matchLabels: {team: x}}}", "defaults: {schedulerName: p}"),
    EXCEPTION,
    "# A comment.",
]
_CONTAINERS = "containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]"
_RUN = "apiVersion: fairlead.dev/v1alpha1\nkind: Run\nmetadata: {name: r}\nspec: "
_TEMPLATE = f"template: {{spec: {{{_CONTAINERS}}}}}"
_LABELS = "labels: {fairlead.dev/run: j, team: x}"
_POD_TEMPLATE = f"{{metadata: {{{_LABELS}}}, spec: {{restartPolicy: Never, {_CONTAINERS}}}}}"
_JOB = f"""\
apiVersion: batch/v1
kind: Job
metadata: {{name: j}}
spec: {{parallelism: 2, completions: 2, completionMode: Indexed, template: {_POD_TEMPLATE}}}"""
_DAEMON_SET = f"""\
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: d}}
spec:
  selector: {{matchLabels: {{team: x}}}}
  template: {_POD_TEMPLATE.replace("Never", "Always")}"""
OBJECTS = [
    *documents_in("pods.yaml"),
    f"{_RUN}{{framework: pytorch, replicas: {{worker: {{count: 3}}}}, {_TEMPLATE}}}",
    f"{_RUN}{{framework: pytorch, replicas: {{worker: {{count: 9}}}}, {_TEMPLATE}}}",
    _JOB,
    _DAEMON_SET,
    "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {team: x}}",
    "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {tier: x}}",
    "apiVersion: v1\nkind: PriorityClass\nmetadata: {name: p}\nvalue: 5\nglobalDefault: true",
    "kind: Pod\nmetadata: {name: wrong}\nspec: {containers: 3}",
]
NODES = [(DATA / "nodes.yaml").read_text(), documents_in("nodes.yaml")[0], ""]
# What somebody changes next: one variant, or the nodes; another part comes or goes.
EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("variant"), st.sampled_from([*VARIANTS, "# None."])),
        st.tuples(st.just("policies"), st.sampled_from(OTHERS)),
        st.tuples(st.just("objects"), st.sampled_from(OBJECTS)),
        st.tuples(st.just("nodes"), st.sampled_from(NODES)),
    ),
    min_size=1,
    max_size=8,
)


def joined(parts: Iterable[str]) -> str:
    """The documents as one text."""
    return "\n---\n".join(parts)


def read_objects(file: str, text: str) -> list[Object]:
    """The objects of a text."""
    return list(objects_in(file, text.encode(), []))


def read_policies(file: str, text: str) -> Documents[PolicyDocument]:
    """The policies of a text."""
    return policy_documents.parse({file: text.encode()})


def offline_with(
    policies: list[Documents[PolicyDocument]],
    objects: list[Object],
    nodes: NodeKinds | None,
    compiler: Compiler,
) -> Offline | None:
    """The question; None if the policies do not compile."""
    try:
        made = compiled(together(policies), compiler).policies
    except InvalidDocuments:
        return None
    world = replace(with_nodes(unread_world(made), nodes), now=NOW)
    return offline_of(world, objects, [], "default")


def described(offline: Offline, kept: KeptDecisions | None) -> tuple[list[object], list[str]]:
    """Everything that an answer shows, and its problems."""
    problems: list[str] = []
    rows: list[object] = []
    for replicas in decisions(offline, problems, kept):
        rows.append((replicas.subject, replicas.all_indexes, word_of(replicas)))
        rows.append((answer_of(replicas), [*unknown_facts([replicas])]))
        current = replace(replicas, evaluation=offline.world.decided(replicas.arrival))
        rows.append(result_of(current))
        rows.append((replicas.warnings, replicas.undecided, replicas.room))
    return rows, problems


@pytest.mark.property
@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(OBJECTS), max_size=6, unique=True), EDITS)
@example(OBJECTS, [("variant", VARIANTS[1]), ("variant", "# None."), ("policies", OTHERS[-1])])
@example(OBJECTS, [("variant", VARIANTS[4]), ("policies", EXCEPTION), ("objects", OBJECTS[-4])])
@example(OBJECTS, [("nodes", NODES[1]), ("variant", VARIANTS[3]), ("policies", OTHERS[0])])
def test_a_kept_answer_is_the_answer(objects: list[str], edits: list[tuple[str, str]]) -> None:
    """Whatever changes from one question to the next, in policies, objects and nodes."""
    kept, compiler = KeptDecisions(), Compiler()
    texts = KeptDocuments("policies.yaml", read_policies)
    manifests = KeptDocuments("manifests.yaml", read_objects)
    nodes_by_text = {
        text: NodeKinds(nodes_among(read_objects("nodes.yaml", text), [])) or None for text in NODES
    }
    lists: dict[str, list[str]] = {"policies": [], "objects": [*objects]}
    choices = {"variant": VARIANTS[0], "nodes": NODES[0]}
    for what, text in [("", ""), *edits]:
        if what in choices:
            choices[what] = text
        elif text in lists.get(what, ()):
            lists[what].remove(text)
        elif what:
            lists[what].insert(0, text)
        read = texts.read(joined([*lists["policies"], choices["variant"], *SHIPPED]))
        listed = manifests.read(joined(lists["objects"]))
        every = [manifest for part in listed.documents for manifest in part]
        offline = offline_with(read.documents, every, nodes_by_text[choices["nodes"]], compiler)
        if offline is not None:
            assert described(offline, kept) == described(offline, None)


@pytest.mark.property
@settings(max_examples=examples(300))
@given(
    st.lists(
        st.lists(st.sampled_from([*SHIPPED, *VARIANTS, *OTHERS]), max_size=6),
        min_size=1,
        max_size=4,
    )
)
def test_a_finding_has_the_place_that_it_has_in_the_whole_text(texts: list[list[str]]) -> None:
    """Also where documents come twice, and after one above has come or gone."""
    kept = KeptDocuments("policies.yaml", read_policies)
    for parts in texts:
        text = joined(parts).replace("match", "mtach", 1)
        read = kept.read(text)
        findings = [read.finding(finding) for part in read.documents for finding in part.findings]
        whole = policy_documents.parse({"policies.yaml": text.encode()})
        assert sorted(findings) == sorted(whole.findings)
