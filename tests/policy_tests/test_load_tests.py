"""Test files are read strictly: a slip in a test must not make it pass."""

from __future__ import annotations

import pytest

from tests.policy_tests.writing import HEAD, WORKER, case
from tests.wording import Wording, mentions
from webhook.errors import InvalidDocuments
from webhook.policy_tests.load_tests import parse


def findings(text: str | bytes) -> list[str]:
    """What is wrong with a file, without its name."""
    with pytest.raises(InvalidDocuments) as caught:
        parse("t", text if isinstance(text, bytes) else text.encode())
    return [str(finding).removeprefix("t:") for finding in caught.value.findings]


def test_documents_are_read_in_their_order() -> None:
    """One file may test several sets; empty documents count as none."""
    first, second = case("{result: placed}"), case("{result: unchanged}")
    documents = parse("t", f"---\n{first}---\n# nothing\n---\n{second}".encode())
    results = [document.model.tests[0].expect.result for document in documents]
    assert results == ["placed", "unchanged"]
    assert documents[0].model.policies == ["."]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (case("{resultt: placed}"), ("11:12: tests[0].expect.resultt: ", "no such field")),
        (case("{}"), ("11:3: tests[0].expect: ", "nothing")),
        (case("{result: placd}"), ("11:20: tests[0].expect.result: ", "'placd'", "placed")),
        (case("{runsOn: [spot-2]}"), ("11:21: tests[0].expect.runsOn[0]: ", "node 'spot-2'")),
        (case("{result: rejected, runsOn: []}"), ("11:30: tests[0].expect.runsOn: ", "rejected")),
        (
            case("{result: placed, reason: x}"),
            ("tests[0].expect.reason: ", "rejected, left-alone or not-sent"),
        ),
        (
            case("{lacks: {tolerations: [{key: a, efect: b}]}}"),
            ("tolerations[0].efect: ", "no such field"),
        ),
        (case("{equals: {nodeSelector: {a: 1}}}"), ("text", "1 is a number", "'1'")),
        (
            case("{result: placed}", pod="{spec: {nodeSelektor: {}}}"),
            ("did you mean 'nodeSelector'?",),
        ),
        (
            case("{result: placed}", pod="{labels: {a: b}, metadata: {labels: {}}}"),
            ("tests[0].pod.labels: ", "metadata.labels"),
        ),
        (
            case("{result: placed}", pod="{spec: {tolerations: [{key: 5}]}}"),
            ("10:36: tests[0].pod.spec.tolerations[0].key: ", "string", "5"),
        ),
        (
            case("{result: placed}", pod="{metadata: {labels: {a.b/c: 1}}}"),
            ("10:36: tests[0].pod.metadata.labels[a.b/c]: ", "string", "1"),
        ),
        (
            case("{result: placed}", pod="{spec: {hostNetwork: yes}}"),
            ("10:29: tests[0].pod.spec.hostNetwork: ", "yes", "boolean"),
        ),
        (case("{result: placed}", more="user:"), ("tests[0].user: ", "null")),
        (HEAD + "tests: []\n", ("tests: ", "empty", "at least 1")),
        (
            case("{result: placed}").replace("nodes:", "policies: []\nnodes:"),
            ("policies: ", "empty", "at least 1"),
        ),
        (HEAD, ("tests: ", "required")),
        (case("{result: placed}") + "kind: PolicyTest\n", ("kind: ", "line 2")),
        ("kind: PlacementPolicy\n", ("kind: ", "PolicyTest", "PlacementPolicy")),
        ("- a\n", ("1:1: ", "kind PolicyTest")),
        ("a: [\n", ("not YAML",)),
        (b"\xff", ("not UTF-8",)),
        (
            case("{result: placed}", pod="{spec: {affinity: {nodeAffinty: {}}}}"),
            ("tests[0].pod.spec.affinity.nodeAffinty: ", "did you mean 'nodeAffinity'?"),
        ),
        (
            case("{result: placed}", pod="{spec: {containers: [{resources: {request: {}}}]}}"),
            ("containers[0].resources.request: ", "did you mean 'requests'?"),
        ),
        (case("{result: placed}", pod="{metadata: {zzz: 1}}"), ("metadata.zzz: ", "no such field")),
        (case("{equals: {}}"), ("tests[0].expect.equals: ", "expects nothing")),
        (case("{audited: {}}"), ("tests[0].expect.audited: ", "expects nothing")),
        (case("{lacks: {tolerations: []}}"), ("expect.lacks.tolerations: ", "expects nothing")),
        (
            case("{result: placed}") + "cluster: {objects: [{kind: Node}]}\n",
            ("cluster.objects[0].kind: ", "RuntimeClass or LimitRange", "Node"),
        ),
        (
            case("{result: placed}") + "cluster: {objects: [{kind: RuntimeClass}]}\n",
            ("cluster.objects[0].metadata.name: ", "name"),
        ),
    ],
    ids=[
        "unknown-field",
        "expects-nothing",
        "unknown-result",
        "unknown-node",
        "rejected-and-runs-on",
        "reason-of-placed",
        "unknown-field-of-toleration",
        "number-as-text",
        "unknown-field-of-pod",
        "labels-twice",
        "number-as-key",
        "number-as-label",
        "yes-as-boolean",
        "empty-user",
        "no-tests",
        "no-policies",
        "tests-missing",
        "key-twice",
        "other-kind",
        "list",
        "not-yaml",
        "not-utf-8",
        "unknown-field-of-affinity",
        "unknown-field-of-resources",
        "unknown-field-of-metadata",
        "empty-equals",
        "empty-audited",
        "empty-lacks",
        "object-of-other-kind",
        "object-without-name",
    ],
)
def test_a_slip_is_found_where_it_stands(
    text: str | bytes, facts: tuple[str, ...], wording: Wording
) -> None:
    """Line, column, path, and what is wrong; and nothing else is found."""
    (only,) = findings(text)
    mentions(only, *facts)
    wording(only)


def test_two_tests_or_nodes_of_one_name_are_an_error() -> None:
    """A report names a test by its name."""
    text = case("{result: placed}")
    twice = text + text[text.index("- name: it") :]
    mentions(findings(twice)[0], "tests[1].name: ", "used by [0]")
    nodes = text.replace("name: steady-1", "name: spot-1")
    mentions(findings(nodes)[0], "nodes[1].name: ", "used by [0]")


def test_all_errors_are_reported_at_once() -> None:
    """One run of the command shows the whole work."""
    text = case("{result: placd}", pod="{spec: {nodeSelektor: {}}}").replace("nodes:", "nods:")
    assert len(findings(text)) == 3


@pytest.mark.parametrize(
    ("pod", "facts"),
    [
        ("{labels: {team: a b}}", ("tests[0].pod.labels.team: ", "'a b'")),
        ("{metadata: {labels: {team: a b}}}", ("tests[0].pod.metadata.labels.team: ", "'a b'")),
        ("{annotations: {a b: c}}", ("tests[0].pod.annotations[a b]: ", "'a b'")),
        ("{metadata: {name: A_b}}", ("tests[0].pod.metadata.name: ", "'A_b'")),
        ("{spec: {nodeSelector: {pool: a b}}}", ("tests[0].pod.spec.nodeSelector.pool: ", "'a b'")),
        ("{spec: {activeDeadlineSeconds: 0}}", ("tests[0].pod.spec.activeDeadlineSeconds: ", "0")),
        ("{spec: {containers: [{name: a, resources: {limits: {gpu: 1}}}]}}",
         ("tests[0].pod.spec.containers[0].resources.limits.gpu: ", "'gpu'")),
    ],
)  # fmt: skip
def test_a_pod_that_no_api_server_takes_is_an_error(
    pod: str, facts: tuple[str, ...], wording: Wording
) -> None:
    """The test would pass, and nobody could create the pod; `mutate -f` says the same."""
    (found,) = findings(case("{result: placed}", pod=pod))
    mentions(found, *facts)
    wording(found)


def test_additional_needs_of_a_pod_need_not_be_written() -> None:
    """Images, volumes that are mounted, and what a volume is made of."""
    pod = "{spec: {containers: [{name: a, volumeMounts: [{name: v, mountPath: /v}]}], volumes: ["
    for source in ("secret: {}", "configMap: {}", "persistentVolumeClaim: {}"):
        parse("t", case("{result: placed}", pod=f"{pod}{{name: w, {source}}}]}}}}").encode())


def test_nulls_in_a_pod_are_the_api_servers_way() -> None:
    """What kubectl printed can be pasted."""
    pod = "{metadata: {labels: {fairlead.dev/run: r}, creationTimestamp: null}, status: {}}"
    assert parse("t", case("{result: placed}", pod=pod).encode())


def test_a_pod_may_be_written_short_or_whole() -> None:
    """Labels and annotations may stand at the top; both forms are one pod."""
    whole = "{apiVersion: v1, kind: Pod, metadata: {labels: {fairlead.dev/run: r,"
    whole += " fairlead.dev/role: worker}}}"
    assert parse("t", case("{result: placed}", pod=whole).encode())
    assert parse("t", case("{result: placed}", pod=WORKER).encode())
