"""Real operators whose pods a policy rejects: who is told, and how often each tries again."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.spaces import ADMINISTRATOR, Json, Running, Space
from tests.cluster.webhooks import serving, told_of_workloads
from tests.eventually import eventually
from tests.operators.jobs import REJECTED, SPARK_APPLICATION, made, template
from tests.wording import mentions
from webhook import names
from webhook.progress import Progress
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.operators.build import BuiltOperator
from webhook.sandbox.operators.install import plan_installations, start_operators
from webhook.sandbox.operators.table import interception_sources, select_operators
from webhook.sandbox.simulated_nodes import SHIPPED_NODES, read_pools

OPERATORS: Final = (
    "training-operator",
    "jobset",
    "trainer",
    "mpi-operator",
    "lws",
    "dask-kubernetes",
    "kuberay-operator",
)
# Two that no pod meets, whatever its author writes.
POLICIES: Final = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: pool-required}
spec:
  requirements: {nodeSelector: {pool: required}}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: other-pool}
spec:
  requirements: {nodeSelector: {pool: other}}
"""
# Everything that anybody writes.
AUDIT: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "verbs": ["create", "update", "patch", "delete"]},
        {"level": "None"},
    ],
}
# Seconds: operators have tried again a few times by then, and what is counted afterwards is the
# pace that they keep.
UNTIL_STEADY: Final = 20.0
COUNTED: Final = 20.0
# Writes of an operator and of Kubernetes' controllers for one object in that time: two for each
# attempt, a pod and an Event. Two to six were seen; operators without a pause make hundreds.
MOST_WRITES: Final = 20


@dataclass(frozen=True)
class Outcomes:
    """What became of each object: its space, and what kubectl printed when it was created."""

    spaces: Mapping[str, Space]
    warnings: Mapping[str, str]
    writes: Mapping[str, Counter[str]]


def ids(manifest: Json) -> str:
    """The kind is the name of a case."""
    kind: str = manifest["kind"]
    return kind


@pytest.fixture(scope="module")
def control_plane(
    binaries: Mapping[str, Path],
    operators_built: Mapping[str, BuiltOperator],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ControlPlane]:
    """One with these operators, which writes down every write."""
    folder = tmp_path_factory.mktemp("rejected")
    (folder / "audit.json").write_text(json.dumps(AUDIT))
    planned = plan_installations(select_operators(OPERATORS), operators_built)
    # Its program wants Spark itself. The definition is enough for who is told.
    spark = plan_installations(select_operators(("spark-operator",)), operators_built)
    settings = Settings(
        pools=read_pools(SHIPPED_NODES),
        audit=True,
        extra_arguments={"kube-apiserver": [f"--audit-policy-file={folder / 'audit.json'}"]},
        definitions=[each for one in (*planned, *spark) for each in one.definitions],
    )
    with ControlPlane(folder / "state", binaries, settings) as plane:
        start_operators(plane, planned, Progress())
        yield plane


@pytest.fixture(scope="module")
def webhook(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """It gets the pods of these operators, and their objects."""
    folder = tmp_path_factory.mktemp("policies")
    (folder / "policies.yaml").write_text(POLICIES)
    chosen = select_operators((*OPERATORS, "spark-operator"))
    sources = interception_sources(chosen)
    with (
        serving(control_plane, folder, sources=sources, options=["--events"]) as running,
        told_of_workloads(control_plane, running.webhook),
    ):
        yield running


@pytest.fixture(scope="module")
def outcomes(
    control_plane: ControlPlane,
    webhook: Running,
    kubectl_for: Callable[[ControlPlane], Kubectl],
) -> Outcomes:
    """Each object is created in a namespace of its own, and all operators try at the same time."""
    assert webhook
    kubectl = kubectl_for(control_plane)
    spaces: dict[str, Space] = {}
    warnings: dict[str, str] = {}
    job = made("batch/v1", "Job", {"template": template(restartPolicy="Never")})
    job["spec"]["template"]["metadata"] = {"labels": {names.RUN: "train"}}
    ask = ("create", "--dry-run=server", "-n", "default", "-f", "-")
    eventually(
        "the API server knows the entry for workloads",
        lambda: kubectl.run(*ask, stdin=json.dumps(job)).stderr,
    )
    for manifest in (*REJECTED, SPARK_APPLICATION):
        name = manifest["kind"].lower()
        control_plane.create_namespace(name, {})
        space = spaces[manifest["kind"]] = Space(control_plane, kubectl.within(name), name)
        done = space.kubectl.run("create", "-f", "-", stdin=json.dumps(manifest))
        assert done.returncode == 0, done.stderr
        warnings[manifest["kind"]] = done.stderr
    submit(spaces["SparkApplication"])
    # Not in hope: this is the time for which writes are counted.
    time.sleep(UNTIL_STEADY)
    before = {kind: writes(space) for kind, space in spaces.items()}
    time.sleep(COUNTED)
    return Outcomes(
        spaces, warnings, {kind: writes(space) - before[kind] for kind, space in spaces.items()}
    )


def writes(space: Space) -> Counter[str]:
    """How often each resource was written in the namespace, not by the test or Fairlead."""
    return Counter(
        f"{event['verb']} {event['objectRef']['resource']} by {event['user']['username']}"
        for event in space.plane.audit_events(space.name)
        if event["user"]["username"] != ADMINISTRATOR
    )


def submit(space: Space) -> None:
    """Create the driver as spark-submit does, which gives it no owner. It is rejected."""
    labels = {"spark-role": "driver", "sparkoperator.k8s.io/app-name": "train"}
    driver = made("v1", "Pod", template("spark-kubernetes-driver")["spec"], "train-driver")
    driver["metadata"]["labels"] = labels
    done = space.kubectl.run("create", "-f", "-", stdin=json.dumps(driver))
    assert done.returncode == 1
    mentions(done.stderr, "pool-required")


@pytest.mark.parametrize("manifest", [*REJECTED, SPARK_APPLICATION], ids=ids)
def test_the_author_is_warned_when_the_object_is_created(
    outcomes: Outcomes, manifest: Json
) -> None:
    """It is created all the same, and its operator would try for ever."""
    kind, space = manifest["kind"], outcomes.spaces[manifest["kind"]]
    mentions(outcomes.warnings[kind], f"{kind} train in {space.name}", "would be rejected")
    mentions(outcomes.warnings[kind], "policy pool-required")


@pytest.mark.parametrize("manifest", [*REJECTED, SPARK_APPLICATION], ids=ids)
def test_the_event_is_on_the_object_that_the_user_wrote(outcomes: Outcomes, manifest: Json) -> None:
    """Not on a child that an operator made of it."""
    kind, space = manifest["kind"], outcomes.spaces[manifest["kind"]]

    def about() -> set[tuple[str, str]]:
        found = space.kubectl.json("get", "events", "--field-selector=reason=PlacementRejected")
        return {(e["involvedObject"]["kind"], e["involvedObject"]["name"]) for e in found["items"]}

    eventually("an Event is written", about, explain=lambda: space.kubectl("get", "events,pods"))
    assert about() == {(kind, "train")}
    shown = space.kubectl("describe", kind.lower(), "train")
    mentions(shown, "PlacementRejected", "pool-required", f"{kind} train")


@pytest.mark.parametrize("manifest", REJECTED, ids=ids)
def test_an_operator_whose_pods_are_rejected_does_not_spin(
    outcomes: Outcomes, manifest: Json
) -> None:
    """It has a pause of its own between two attempts, which grows."""
    found = outcomes.writes[manifest["kind"]]
    assert found.total() <= MOST_WRITES, found


def test_no_pod_is_created(outcomes: Outcomes) -> None:
    """The policy rejects every one of them."""
    assert [space.pods() for space in outcomes.spaces.values()] == [[]] * len(outcomes.spaces)
