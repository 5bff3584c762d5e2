"""What decisions need is read from files, and what is not known is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.files import NODES, POD, POLICIES, WEB
from tests.policy_tests.writing import policy
from tests.wording import Wording, mentions
from webhook.cli.offline import Offline, read_nodes, read_offline, read_policies
from webhook.errors import UnreadableInput
from webhook.evaluation.world import labels_of

BATCH = policy(
    "batch",
    "match: {namespaceSelector: {matchLabels: {tier: batch}}}, defaults: {schedulerName: s}",
)
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: research, labels: {tier: batch}}\n"
CLASSES = """\
kind: PriorityClass
metadata: {name: high}
value: 100
globalDefault: true
---
kind: PriorityClass
metadata: {name: normal}
value: 10
globalDefault: true
---
kind: PriorityClass
metadata: {name: low}
value: 1
"""


def read(folder: Path, objects: str, policies: str = POLICIES, file: str = "") -> Offline:
    for name, text in (("o.yaml", objects), ("p.yaml", policies), ("n.yaml", file)):
        (folder / name).write_text(text)
    namespaces = folder / "n.yaml" if file else None
    return read_offline([folder / "o.yaml"], [folder / "p.yaml"], "mine", namespaces)


def test_an_objects_own_namespace_goes_first(tmp_path: Path) -> None:
    """The option is for objects that name none."""
    offline = read(tmp_path, POD + "---\nkind: Pod\napiVersion: v1\n")
    assert [each.source.namespace for each in offline.templates] == ["research", "mine"]


def test_namespaces_and_priority_classes_among_the_objects_count(tmp_path: Path) -> None:
    """They are there before the pods in the cluster, too; of two defaults the lower value is."""
    offline = read(tmp_path, f"{POD}---\n{NAMESPACE}---\n{CLASSES}", BATCH)
    assert labels_of("research", offline.world.namespaces) == {
        "kubernetes.io/metadata.name": "research",
        "tier": "batch",
    }
    assert offline.world.cluster.default_priority_class == "normal"
    assert offline.describe_unknown() == []


def test_the_same_is_read_from_a_file(tmp_path: Path) -> None:
    """As `kubectl get ns,priorityclass -o yaml` prints it."""
    offline = read(tmp_path, POD, BATCH, f"{NAMESPACE}---\n{CLASSES}")
    assert labels_of("research", offline.world.namespaces)["tier"] == "batch"
    assert offline.world.cluster.default_priority_class == "normal"


def test_unknown_labels_that_policies_need_are_reported(tmp_path: Path, wording: Wording) -> None:
    """Each namespace once, with the policies and the cure; silent if no policy asks."""
    offline = read(tmp_path, f"{POD}---\n{POD}", BATCH)
    (told,) = offline.describe_unknown()
    mentions(told, "labels", "namespace research", "policy batch", "--namespaces")
    wording(told)
    assert read(tmp_path, POD).describe_unknown() == []


EXCEPTION = """
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementException
metadata: {name: gold}
spec:
  policies: ["*"]
  match: {namespaceSelector: {matchLabels: {tier: gold}}}
  until: "2099-12-20T00:00:00Z"
  reason: test
"""
UNMARKED = POD.replace("{fairlead.dev/run: mnist, fairlead.dev/role: worker}", "{app: x}")
NOTEBOOKS = policy("notebooks", "match: {kinds: [notebook]}, defaults: {schedulerName: s}")


@pytest.mark.parametrize(
    ("objects", "policies", "facts"),
    [
        (POD, POLICIES + EXCEPTION, ("exception gold asks",)),
        (UNMARKED, POLICIES, ("Pod/mnist are part of a run if", "fairlead.dev/place: all")),
        (POD, NOTEBOOKS, ("fairlead.dev/kind ", "the kind", "Pod/mnist")),
        (
            POD.replace("spec:\n", "spec:\n  nodeSelector: {pool: a}\n").replace(
                "fairlead.dev/role", "kueue.x-k8s.io/podset: main, fairlead.dev/role"
            ),
            POLICIES,
            ("Kueue chose", "Pod/mnist", "fairlead.dev/kueue: keep"),
        ),
    ],
    ids=["an exception's selector", "no mark", "the kind", "Kueue"],
)
def test_results_that_depend_on_unknown_labels_are_reported(
    tmp_path: Path, objects: str, policies: str, facts: tuple[str, ...], wording: Wording
) -> None:
    """Each is an answer that a cluster would give otherwise; known labels end it."""
    (told,) = read(tmp_path, objects, policies).describe_unknown()
    mentions(told, "namespace research", "not known", *facts)
    wording(told)
    assert read(tmp_path, f"{objects}---\n{NAMESPACE}", policies).describe_unknown() == []


HASHED = WEB.replace("{spec", "{metadata: {labels: {fairlead.dev/run: web}}, spec")


@pytest.mark.parametrize(
    ("expression", "unknown"),
    [
        ("{key: pod-template-hash, operator: In, values: [abc]}", True),
        ("{key: pod-template-hash, operator: NotIn, values: [abc]}", True),
        ("{key: pod-template-hash, operator: Exists}", False),
        ("{key: app, operator: In, values: [abc]}", False),
    ],
)
def test_a_value_that_only_the_controller_knows_is_reported_if_a_policy_compares_it(
    tmp_path: Path, expression: str, unknown: bool, wording: Wording
) -> None:
    """With the label, the pods and the policy; whether the label exists is known."""
    selector = f"match: {{podSelector: {{matchExpressions: [{expression}]}}}}"
    policies = policy("hashed", f"{selector}, defaults: {{schedulerName: s}}")
    found = read(tmp_path, HASHED, policies).describe_unknown()
    assert len(found) == unknown
    for line in found:
        mentions(line, "pod-template-hash", "Deployment/web", "policy hashed", "Exists")
        wording(line)


@pytest.mark.parametrize(
    ("spec", "unknown"),
    [
        ("{}", True),
        ("{automountServiceAccountToken: true}", True),
        ("{automountServiceAccountToken: false}", False),
        ("{volumes: [{name: a, projected: {sources: []}}]}", False),
    ],
)
def test_the_volume_with_a_token_is_reported_if_a_policy_matches_by_it(
    tmp_path: Path, spec: str, unknown: bool, wording: Wording
) -> None:
    """Unless the pod has such a volume of its own, or wants no token."""
    policies = policy("tokens", "match: {volumes: [projected]}, defaults: {schedulerName: s}")
    pod = POD.replace("spec:\n", f"spec:\n  {spec[1:-1]}\n")
    found = read(tmp_path, pod, policies).describe_unknown()
    assert len(found) == unknown
    for line in found:
        mentions(line, "projected", "Pod/mnist", "policy tokens", "automountServiceAccountToken")
        wording(line)
    stored = pod.replace("name: mnist\n", "name: mnist\n  uid: u\n")
    assert read(tmp_path, stored, policies).describe_unknown() == []


def test_a_namespace_among_the_objects_takes_no_label_away(tmp_path: Path) -> None:
    """As `kubectl apply` of it would take none."""
    bare = "apiVersion: v1\nkind: Namespace\nmetadata: {name: research, labels: {own: x}}\n"
    offline = read(tmp_path, f"{POD}---\n{bare}", BATCH, NAMESPACE)
    assert labels_of("research", offline.world.namespaces).keys() >= {"tier", "own"}


def test_objects_that_make_no_pods_are_an_error(tmp_path: Path) -> None:
    """With what there was instead."""
    for text, there in (
        ("kind: Service\n---\nkind: Service", "only 2 Services"),
        ("kind: PlacementPolicy\n---\nkind: PlacementPolicy", "only 2 PlacementPolicies"),
        ("kind: CapacityClass\n---\nkind: CapacityClass", "only 2 CapacityClasses"),
        ("", "nothing"),
    ):
        with pytest.raises(UnreadableInput, match=there):
            read(tmp_path, text)


def test_a_run_has_the_pods_of_its_plan(tmp_path: Path) -> None:
    """What is wrong with one is among the problems."""
    run = (
        "apiVersion: fairlead.dev/v1alpha1\nkind: Run\nmetadata: {name: mnist}\nspec:\n"
        "  framework: pytorch\n  template: {spec: {containers: [{name: main, image: i}]}}\n"
        "  replicas: {master: {count: 1}, worker: {count: 2}}\n"
    )
    found = read(tmp_path, run)
    assert [(each.part, each.count) for each in found.templates] == [("master", 1), ("worker", 2)]
    beside = read(tmp_path, f"{POD}---\n{run.replace('framework', 'framwork')}")
    assert [each.source.kind for each in beside.templates] == ["Pod"]
    (problem,) = beside.problems
    mentions(problem, "Run/mnist: ", "framwork")


def test_a_delegated_run_is_the_object_that_it_becomes(tmp_path: Path) -> None:
    """At the place of the Run; what no engine can do is reported there."""
    run = (
        "apiVersion: fairlead.dev/v1alpha1\nkind: Run\nmetadata: {name: mnist}\nspec:\n"
        "  backend: kubeflow\n  framework: pytorch\n"
        "  template: {spec: {containers: [{name: main, image: i}]}}\n"
        "  replicas: {master: {}, worker: {count: 2}}\n"
    )
    found = read(tmp_path, run)
    (source,) = found.objects
    assert source.title == "PyTorchJob/mnist"
    assert source.place().endswith("o.yaml:1:1")
    assert [(each.part, each.count) for each in found.templates] == [("master", 1), ("worker", 2)]
    beside = read(tmp_path, f"{POD}---\n{run.replace('pytorch', 'ray')}")
    assert [each.source.kind for each in beside.templates] == ["Pod"]
    mentions(" ".join(beside.problems), "Run/mnist", "ray")


def test_a_folder_without_policies_is_an_error(tmp_path: Path) -> None:
    """It is a slip in the path, far more often than it is meant."""
    with pytest.raises(UnreadableInput, match="no policy file"):
        read_policies([tmp_path])


def test_nodes_are_read_in_their_order(tmp_path: Path) -> None:
    """A List, as kubectl prints it."""
    file = tmp_path / "nodes.yaml"
    file.write_text(NODES)
    assert [node.name for node in read_nodes(file)] == ["spot-1", "spot-2", "steady-1"]
