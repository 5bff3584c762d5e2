"""What `fairlead preview` and `explain` foresee offline is what a real cluster makes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cluster.every_kind import EVERY_KIND, a_job
from tests.cluster.manifests import SPOT_CLASS, Json, policy_text, spec, template, workload
from tests.cluster.spaces import NewNamespace, Space
from tests.eventually import eventually
from webhook import names
from webhook.evaluation.replicas import Replicas
from webhook.placement import pod as pods
from webhook.placement.nodes import survey
from webhook.policy.subject import ADDED_VOLUME, volumes
from webhook.questions.decisions import decisions
from webhook.questions.offline import read_nodes, read_offline
from webhook.sources.kind_model import UNKNOWN
from webhook.workloads.stored_pod import without_binding

pytest_plugins = ["tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures("running")

POLICIES = (
    SPOT_CLASS
    + policy_text(
        "on-spot",
        "match: {namespaceSelector: {matchLabels: {test: foreseen}}}",
        "exclude: [{replicaIndexes: [0]}]",
        "overrides: {capacity: [{class: spot, mode: Constrain}]}",
    )
    + policy_text(
        "the-first-stays",
        "match: {namespaceSelector: {matchLabels: {test: foreseen}}, replicaIndexes: [0]}",
        "overrides: {capacity: [{class: spot, mode: Prevent}]}",
    )
    + policy_text(
        "second-of-a-set",
        'match: {podSelector: {matchLabels: {apps.kubernetes.io/pod-index: "1"}}}',
        "defaults: {annotations: {which: second}}",
    )
    + policy_text(
        "of-a-job",
        "match: {podSelector: {matchExpressions: [{key: job-name, operator: Exists}]}}",
        "defaults: {labels: {from: job}}",
    )
)
VOLUMES = [{"name": "a"}, {"name": "b", "emptyDir": None}]
WORKLOADS = {
    **{kind: make(spec()) for kind, make in EVERY_KIND.items() if kind != "cronjob"},
    "job-not-indexed": a_job(spec()),
    "job-with-own-selector": a_job(
        spec(volumes=VOLUMES), manualSelector=True, selector={"matchLabels": {"app": "app"}}
    ),
}


@pytest.fixture
def space(new_namespace: NewNamespace) -> Space:
    """A namespace in which the policies apply."""
    return new_namespace({"test": "foreseen"})


def foreseen(space: Space, manifest: Json, folder: Path) -> list[Replicas]:
    """What is decided offline, with the namespace as kubectl prints it."""
    (folder / "w.json").write_text(json.dumps(manifest))
    (folder / "p.yaml").write_text(POLICIES)
    (folder / "ns.yaml").write_text(space.kubectl("get", "ns", space.name, "-o", "yaml"))
    offline = read_offline([folder / "w.json"], [folder / "p.yaml"], space.name, folder / "ns.yaml")
    return decisions(offline)


def of(replicas: list[Replicas], seen: Json) -> tuple[Replicas, Json]:
    """Those of which the pod is one, and its own metadata as it was foreseen, unplaced."""
    labels = seen["metadata"]["labels"]
    made = [(each, each.template.pod(at)["metadata"]) for each in replicas for at in each.indexes]
    return next(one for one in made if _known(one[1]["labels"], labels).items() <= labels.items())


def _known(foreseen: Json, labels: Json) -> Json:
    """The labels with the pod's value where only its existence was foreseen."""
    return {k: labels.get(k) if v == UNKNOWN else v for k, v in foreseen.items()}


@pytest.mark.parametrize("manifest", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_pods_come_out_as_foreseen(space: Space, manifest: Json, tmp_path: Path) -> None:
    """Same stamp, labels and placement, but for what the API server adds; on a foreseen node."""
    replicas = foreseen(space, manifest, tmp_path)
    expected = sum(len(each.indexes) for each in replicas if each.template.count is not None)
    (tmp_path / "nodes.yaml").write_text(space.kubectl("get", "nodes", "-o", "yaml"))
    nodes = read_nodes(tmp_path / "nodes.yaml")
    space.create(manifest)
    # Of a DaemonSet nobody foresees how many there will be: that it is created is all.
    for seen in space.wait_for_pods(expected) if expected else ():
        found, own = of(replicas, seen)
        wanted, real = found.decision.placement, pods.parse_pod(seen)
        assert wanted is not None
        assert real.annotations[names.PLACEMENT] == wanted.annotations[names.PLACEMENT]
        known = _known({**wanted.labels, **own["labels"]}, real.labels)
        assert known == without_binding(real.labels)
        assert volumes(seen["spec"]) - {ADDED_VOLUME} == volumes(found.arrival.pod["spec"])
        assert {**wanted.annotations, **own.get("annotations", {})}.items() <= (
            real.annotations.items()
        )
        for field in ("node_selector", "required", "lists", "topology_spread"):
            assert getattr(real, field) == getattr(wanted, field)
        added = [each for each in real.tolerations if each not in wanted.tolerations]
        assert all("node.kubernetes.io/" in each["key"] for each in added)
        assert len(added) + len(wanted.tolerations) == len(real.tolerations)
        assert seen["spec"]["nodeName"] in survey(wanted, {}, nodes).admitted


def test_volumes_of_claims_are_foreseen(space: Space, tmp_path: Path) -> None:
    """A StatefulSet's pod has one for each claim, by its name; nothing binds the claims here."""
    claims = [
        {
            "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        for name in ("data", "logs")
    ]
    made = template(volumes=[{"name": "data", "emptyDir": {}}])
    manifest = workload("StatefulSet", "w", made, serviceName="w", volumeClaimTemplates=claims)
    (found,) = foreseen(space, manifest, tmp_path)
    space.create(manifest)
    eventually("there is a pod", lambda: len(space.pods()) == 1, explain=space.pods)
    (seen,) = space.pods()
    real = {each["name"]: each for each in seen["spec"]["volumes"] if ADDED_VOLUME not in each}
    assert real == {each["name"]: each for each in found.arrival.pod["spec"]["volumes"]}


def test_a_mutated_workload_can_be_created(space: Space, tmp_path: Path) -> None:
    """What -o yaml prints is accepted, and its pods are unchanged by the webhook."""
    manifest = workload(
        "Deployment", "w", {"metadata": {"labels": {names.RUN: "r", "app": "app"}}, "spec": spec()}
    )
    (found,) = foreseen(space, manifest, tmp_path)
    space.create({**manifest, "spec": {**manifest["spec"], "template": found.mutated()}})
    (seen,) = space.wait_for_pods(1)
    assert (
        seen["metadata"]["annotations"][names.PLACEMENT]
        == (found.mutated()["metadata"]["annotations"][names.PLACEMENT])
    )
