"""Priority classes: a policy's, a pod's own, and a default of the cluster that goes.

Random pods with and without classes are in tests/agreement/test_differential.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.cluster.manifests import Json, pod, policy_text
from tests.cluster.spaces import NewNamespace, Running, Space
from tests.eventually import eventually
from webhook.errors import SandboxError
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = ["tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures("running")

POLICIES = policy_text(
    "batch-priority",
    "match: {namespaceSelector: {matchLabels: {test: default}}}",
    "defaults: {priorityClassName: test-batch}",
)
PATH = "/apis/scheduling.k8s.io/v1/priorityclasses"
NewClass = Callable[..., None]
BATCH = ("test-batch", 1000, "Never")


@pytest.fixture
def new_class(control_plane: ControlPlane) -> Iterator[NewClass]:
    """Makes PriorityClasses, which are the whole cluster's, and takes them away in the end."""
    made: list[str] = []

    def make(name: str, value: int, **fields: object) -> None:
        made.append(name)
        control_plane.api.create(PATH, {"metadata": {"name": name}, "value": value, **fields})

    yield make
    for name in made:
        control_plane.api.call("DELETE", f"{PATH}/{name}")


@pytest.fixture(autouse=True)
def classes(new_class: NewClass) -> None:
    """The class that the policies name, and one for pods to name."""
    new_class("test-batch", 1000, preemptionPolicy="Never")
    new_class("test-own", 2000)


def priority(seen: Json) -> tuple[str | None, int, str]:
    """A pod's class, and what the API server has made of it."""
    spec = seen["spec"]
    return spec.get("priorityClassName"), spec["priority"], spec["preemptionPolicy"]


def settled(space: Space, sent: Json, expected: tuple[str | None, int, str]) -> bool:
    """Whether a dry run comes out as expected: classes are told of by watches."""
    try:
        done = space.create(sent, dry_run=True)
    except SandboxError:
        # The API server may not have heard of the class itself.
        return False
    return priority(done) == expected


def test_without_a_default_class_in_the_cluster(new_namespace: NewNamespace) -> None:
    """A pod without a class gets the policy's with its value; the pod's own class stays."""
    space = new_namespace({"test": "default"})
    assert priority(space.create(pod("none"))) == BATCH
    own = space.create(pod("own", priorityClassName="test-own"))
    assert priority(own) == ("test-own", 2000, "PreemptLowerPriority")


def test_a_pod_whose_class_a_policy_sets_is_counted_once(
    running: Running, new_namespace: NewNamespace
) -> None:
    """The Priority plugin changes the pod after the first call, so there is a second one."""
    space = new_namespace({"test": "default"})

    def counted() -> tuple[float, float]:
        decided = running.metric("fairlead_decisions_total", policy="batch-priority")
        return decided, running.metric("fairlead_admission_requests_total")

    decided, requests = counted()
    space.create(pod("once"))
    assert counted() == (decided + 1, requests + 2)


def test_a_default_class_that_is_gone_counts_no_more(
    new_namespace: NewNamespace, new_class: NewClass, control_plane: ControlPlane
) -> None:
    """A pod that names that class then does so itself."""
    space = new_namespace({"test": "default"})
    new_class("test-normal", 5, globalDefault=True)
    named = pod("p", priorityClassName="test-normal")
    eventually("the default class gives way", lambda: settled(space, named, BATCH))
    control_plane.api.call("DELETE", f"{PATH}/test-normal")
    new_class("test-normal", 5)
    own = ("test-normal", 5, "PreemptLowerPriority")
    eventually("the pod's own class counts", lambda: settled(space, named, own))
