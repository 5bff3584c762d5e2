"""Five hundred pods of all sorts at once: those of runs are placed, the others are as ever."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random

import jsonpatch
import pytest

from tests.cluster.manifests import SPOT, WORKERS_ON_SPOT, Json, pod, terms, within
from tests.cluster.spaces import is_stamped
from tests.control_planes import clear_namespace
from webhook import names
from webhook.admission.arrival import Arrival, Cluster
from webhook.admission.engine import decide
from webhook.policy.load import load
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import start_webhook, stop_webhook
from webhook.sandbox.kubectl import Kubectl

POLICIES = (
    WORKERS_ON_SPOT
    + """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: no-claims-on-spot}
spec:
  match: {volumes: [persistentVolumeClaim]}
  overrides: {capacity: [{class: spot, mode: Prevent}]}
  priority: 10
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: everything}
spec:
  priority: -1
  defaults:
    nodeSelector: {kubernetes.io/arch: amd64}
    labels: {team: research}
    securityContext: {runAsNonRoot: true, fsGroup: 2000}
  overrides:
    tolerations: [{key: experiments, operator: Exists, effect: NoSchedule}]
"""
)
COUNT = 500
# Marks of other systems: the engine knows them, the webhook is not asked about them by default.
OTHERS: tuple[Json, ...] = ({}, {"app": "web"}, {"ray.io/cluster": "c"}, {"mlrun/class": "job"})


def mixed_pods() -> list[Json]:
    """Pods with all that matters to placement, and much that does not; half of them of runs."""
    random = Random(20261121)
    return [_mixed(random, f"p{number:03}", of_a_run=number % 2 == 0) for number in range(COUNT)]


def _mixed(random: Random, name: str, *, of_a_run: bool) -> Json:
    labels = dict(random.choice(OTHERS))
    if of_a_run:
        labels[names.RUN] = f"run-{random.randrange(9)}"
        if random.random() < 0.7:
            labels[names.ROLE] = random.choice(["worker", "master", "ps"])
    # Nobody schedules them: what is looked at is how they are made, and that stays as it is.
    made = pod(name, labels=labels, schedulerName="nobody")
    if random.random() < 0.1:
        made["metadata"].pop("labels" if not labels else "annotations")
    spec = made["spec"]
    for change in random.sample(_CHANGES, k=random.randrange(5)):
        change(random, spec)
    return made


def _volume(random: Random, spec: Json) -> None:
    sources: list[Json] = [
        {"emptyDir": {}},
        {"persistentVolumeClaim": {"claimName": "c"}},
        {"configMap": {"name": "m"}},
    ]
    spec["volumes"] = [{"name": "v", **random.choice(sources)}]
    spec["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]


def _selector(random: Random, spec: Json) -> None:
    spec["nodeSelector"] = random.choice(
        [{}, {"kubernetes.io/arch": "arm64"}, {"pool": "a"}, {"kubernetes.io/hostname": "n"}]
    )


def _affinity(random: Random, spec: Json) -> None:
    one = within("zone", "a", "b")
    spec["affinity"] = random.choice(
        [
            terms(one),
            terms(one, within(SPOT, "true"), {"key": "pool", "operator": "DoesNotExist"}),
            {"nodeAffinity": {}},
            {"podAntiAffinity": {}},
        ]
    )


def _tolerations(random: Random, spec: Json) -> None:
    choices: list[Json] = [
        {"operator": "Exists"},
        {"key": SPOT, "operator": "Exists"},
        {"key": names.TAINT_UNREACHABLE, "effect": "NoExecute", "tolerationSeconds": 20},
        {"key": "experiments", "value": "x", "effect": "NoSchedule"},
    ]
    spec["tolerations"] = random.sample(choices, k=random.randrange(4))


def _security(random: Random, spec: Json) -> None:
    spec["securityContext"] = random.choice([{}, {"runAsUser": 0}, {"fsGroup": 5}])


def _containers(random: Random, spec: Json) -> None:
    spec["containers"][0]["env"] = [
        {"name": f"V{number}", "value": "x" * 20} for number in range(random.randrange(40))
    ]
    spec["containers"][0]["resources"] = {"limits": {"cpu": "100m", "memory": "1Gi"}}
    spec["initContainers"] = [{"name": "init", "image": "i", "command": ["sh", "-c", "<&>"]}]


def _account(random: Random, spec: Json) -> None:
    spec["automountServiceAccountToken"] = random.random() < 0.5


_CHANGES = [_volume, _selector, _affinity, _tolerations, _security, _containers, _account]


def comparable(seen: Json) -> Json:
    """A pod as it was created, without what is another's each time, whatever the webhook does."""
    one = copy.deepcopy(seen)
    for field in ("uid", "creationTimestamp", "resourceVersion", "namespace", "managedFields"):
        one["metadata"].pop(field, None)
    text = json.dumps(one)
    for volume in one["spec"].get("volumes", []):
        if volume["name"].startswith("kube-api-access-"):
            text = text.replace(volume["name"], "kube-api-access")
    result: Json = json.loads(text)
    return result


@pytest.fixture(scope="module")
def both(
    control_plane: ControlPlane,
    cluster_kubectl: Kubectl,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[dict[str, Json], dict[str, Json]]]:
    """The pods by name, as they are in etcd: created without the webhook, and with it."""
    folder = tmp_path_factory.mktemp("policies")
    (folder / "policies.yaml").write_text(POLICIES)
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": mixed_pods()})
    made: list[dict[str, Json]] = []
    webhook = None
    try:
        for name in ("mixed-without", "mixed-with"):
            control_plane.create_namespace(name)
            if made:
                webhook = start_webhook(control_plane, folder)
            kubectl = cluster_kubectl.within(name)
            kubectl("create", "-f", "-", stdin=text)
            stored = kubectl.json("get", "pods")["items"]
            made.append({one["metadata"]["name"]: one for one in stored})
        yield made[0], made[1]
    finally:
        if webhook:
            stop_webhook(control_plane, webhook)
        for name in ("mixed-without", "mixed-with"):
            clear_namespace(control_plane, name)


Both = tuple[dict[str, Json], dict[str, Json]]


def of_a_run(seen: Json) -> bool:
    """Whether the pod carries our mark."""
    return names.RUN in seen["metadata"].get("labels", {})


def test_every_pod_is_created(both: Both) -> None:
    """None is refused, neither with the webhook nor without it."""
    without, with_it = both
    assert len(without) == len(with_it) == COUNT
    assert sum(map(of_a_run, with_it.values())) == COUNT // 2


def test_pods_of_no_run_are_as_they_are_without_the_webhook(both: Both) -> None:
    """But for uid, times, resourceVersion, namespace, and the name of the token's volume."""
    without, with_it = both
    others = [name for name, seen in with_it.items() if not of_a_run(seen)]
    for name in others:
        assert not is_stamped(with_it[name])
        assert comparable(with_it[name]) == comparable(without[name])


def test_pods_of_runs_are_placed_as_the_engine_says_and_else_as_without_the_webhook(
    both: Both,
) -> None:
    """What the API server stores is what the offline engine foresees, field by field."""
    without, with_it = both
    policies = load({"policies.yaml": POLICIES.encode()}).policies
    results: dict[str, int] = {}
    for name, seen in with_it.items():
        if not of_a_run(seen):
            continue
        own = comparable(without[name])
        labels = {"kubernetes.io/metadata.name": "mixed-with"}
        decision = decide(Arrival(own, "mixed-with", labels, "admin"), policies, Cluster())
        assert decision.allowed
        results[decision.result] = results.get(decision.result, 0) + 1
        assert is_stamped(seen)
        assert comparable(seen) == jsonpatch.apply_patch(own, list(decision.patch))
    assert results == {"placed": COUNT // 2}
