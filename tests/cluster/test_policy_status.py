"""What `kubectl get` and `describe` say of policies: written by the real controller."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from tests.admission.reviews import pod, review
from tests.cli.served import Served, ask, pool_policy, served
from tests.cluster.manifests import LABELLED_SPOT
from tests.cluster.paths import path
from tests.cluster.spaces import Json, metric
from tests.control_planes import StartControlPlane
from tests.eventually import eventually
from tests.objects import an_object, required_affinity
from tests.server.serving import readiness
from tests.wording import mentions
from webhook import names
from webhook.cli import fairlead
from webhook.cli.check import command as check
from webhook.policy.crd.definitions import custom_resource_definitions
from webhook.run.crd import custom_resource_definition
from webhook.sandbox.api import install_definitions
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.fairlead import SandboxController, start_controller
from webhook.sandbox.kubectl import Kubectl

# Enough for what only stores and tells.
SMALL = Settings(components=("etcd", "kube-apiserver"))
CONTROLLER = "status-controller"
OPTIONS = ("--no-leader-election", "--policy-status-interval", "0.4")
ON_SPOT = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: on-spot}
spec:
  priority: 7
  description: Jobs run where it is cheap.
  match: {namespaces: ["spot-*"]}
  overrides: {capacity: [{class: spot, mode: Constrain}]}
"""
STRICT = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: strict}
spec:
  match: {namespaces: [strict]}
  requirements: {nodeSelector: {pool: a}}
"""
NOWHERE = ON_SPOT.replace("class: spot", "class: nowhere")


def large_policy(at: int) -> str:
    """A policy whose condition on nodes multiplies with that of each other."""
    terms = [
        {
            "matchExpressions": [
                {"key": f"k{(term + more) % 9}", "operator": "In", "values": [f"v{term}-{at}", "w"]}
                for more in range(2)
            ]
        }
        for term in range(20)
    ]
    spec = {"overrides": {"affinity": required_affinity(*terms)}, "priority": at}
    return yaml.safe_dump(
        {**an_object(names.API_VERSION, names.POLICY_KIND, f"large-{at}"), "spec": spec}
    )


class Site:
    """A cluster with policies, replicas of the webhook that are its pods, and a controller."""

    def __init__(self, plane: ControlPlane, kubectl: Kubectl, folder: Path) -> None:
        self.plane = plane
        self.kubectl = kubectl
        self.folder = folder

    def status(self, place: str) -> Json:
        """The status of `pp/NAME` or `cc/NAME`; empty before one was written."""
        return self.stored(place).get("status") or {}

    def stored(self, place: str) -> Json:
        """What `kubectl get pp/NAME` shows; empty if it is not there."""
        short, _, name = place.partition("/")
        resource = {"pp": names.PLACEMENT_POLICIES, "cc": names.CAPACITY_CLASSES}[short]
        found: Json = self.plane.api.get(path(resource, name)) or {}
        return found

    def condition(self, place: str, kind: str = "Accepted") -> Json:
        """One of its conditions; empty if there is none."""
        conditions = self.status(place).get("conditions", ())
        return next((each for each in conditions if each["type"] == kind), {})

    def until(self, what: str, holds: Callable[[], object]) -> None:
        """Wait until it holds; fails with all statuses if it never does."""
        eventually(what, holds, explain=lambda: self.kubectl("get", "pp,cc", "-o", "yaml"))

    def until_said(self, place: str, kind: str, status: str, reason: str) -> Json:
        """Wait until a condition of the newest generation is so, and return it."""
        generation = self.stored(place)["metadata"]["generation"]

        def said() -> bool:
            found = self.condition(place, kind)
            seen = (found.get("status"), found.get("reason"), found.get("observedGeneration"))
            return seen == (status, reason, generation)

        self.until(f"{place}: {kind} is {status}, {reason}", said)
        return self.condition(place, kind)

    @contextmanager
    def replica(self, name: str, *, folder: Path | None = None) -> Iterator[Served]:
        """The webhook by the cluster's policies, or a folder's, as a pod of the cluster."""
        directory = self.folder / name
        directory.mkdir()
        source = ("--policies", str(folder)) if folder else ("--policies-from-cluster",)
        cluster = ("--kubeconfig", str(self.plane.kubeconfig))
        with served(directory, "--grace", "0", policies=source, cluster=cluster) as server:
            self.pose(name, server.health_port)
            yield server

    def pose(self, name: str, port: int) -> None:
        """Let there be a pod of the webhook that runs on this machine."""
        labels = {"app.kubernetes.io/name": "fairlead", "app.kubernetes.io/component": "webhook"}
        ports = [{"name": "health", "containerPort": port}]
        container = {"name": "webhook", "image": "example.invalid/none", "ports": ports}
        manifest = an_object(
            "v1", "Pod", {"name": name, "labels": labels}, {"containers": [container]}
        )
        pods = path("pods", namespace=names.NAMESPACE)
        self.plane.api.create(pods, manifest)
        status = {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
        self.plane.api.patch(f"{pods}/{name}/status", {"status": status})


@pytest.fixture(scope="module")
def plane(start_module_plane: StartControlPlane) -> ControlPlane:
    """An API server of the module's own, for what is told of its policies is told of all."""
    started = start_module_plane(SMALL)
    install_definitions(started.api, [custom_resource_definition()])
    started.create_namespace(names.NAMESPACE)
    account = {"metadata": {"name": "default"}}
    path = f"/api/v1/namespaces/{names.NAMESPACE}/serviceaccounts"
    started.api.call("POST", path, account)
    return started


def begin(plane: ControlPlane) -> SandboxController:
    """Start the controller; it ends with the cluster."""
    options = (*OPTIONS, "--lease-namespace", names.NAMESPACE)
    return start_controller(plane, name=CONTROLLER, options=options)


@pytest.fixture(scope="module")
def controller(plane: ControlPlane) -> SandboxController:
    """The controller, begun before anybody has defined what policies are."""
    return begin(plane)


@pytest.fixture(scope="module")
def site(
    plane: ControlPlane,
    controller: SandboxController,
    kubectl_for: Callable[[ControlPlane], Kubectl],
    tmp_path_factory: pytest.TempPathFactory,
) -> Site:
    """The cluster, once it knows policies."""
    missing = f"not know placementpolicies.{names.GROUP}"
    eventually("the kinds are missed", lambda: missing in told(controller))
    for definition in custom_resource_definitions().values():
        install_definitions(plane.api, [definition])
    kubectl = kubectl_for(plane).within(names.NAMESPACE)
    return Site(plane, kubectl, tmp_path_factory.mktemp("replicas"))


def told(controller: SandboxController) -> str:
    """What it says at /readyz of the statuses; it is ready whatever that is."""
    status, detail = readiness(controller.health_port)
    assert status == 200
    return str(detail["conditions"]["policy-status"]["reason"])


@pytest.fixture
def clean(site: Site) -> Iterator[Site]:
    """Without policies at the end."""
    yield site
    pods = path("pods", namespace=names.NAMESPACE)
    everything = (path(names.PLACEMENT_POLICIES), path(names.CAPACITY_CLASSES), path("nodes"))
    for collection in (*everything, f"{pods}?gracePeriodSeconds=0"):
        site.plane.api.delete(collection)


def test_a_set_that_is_none_says_who_is_at_fault_and_what_is_in_force(clean: Site) -> None:
    """What was good stays accepted as it was; what is new beside a fault has to wait."""
    site = clean
    site.kubectl("create", "-f", "-", stdin=f"{LABELLED_SPOT}---{ON_SPOT}---{STRICT}")
    for place in ("pp/on-spot", "pp/strict", "cc/spot"):
        site.until_said(place, "Accepted", "True", "Accepted")
    began = site.condition("pp/strict")["lastTransitionTime"]
    site.kubectl("apply", "-f", "-", stdin=NOWHERE)
    message = site.until_said("pp/on-spot", "Accepted", "False", "UnknownClass")["message"]
    assert message.startswith("spec.overrides.capacity[0].class: ")
    mentions(message, "no capacity class 'nowhere'", "last good set")
    site.kubectl("apply", "-f", "-", stdin=pool_policy("b", "late"))
    message = site.until_said("pp/late", "Accepted", "False", "RefusedSet")["message"]
    mentions(message, "until placementpolicies/on-spot is fixed")
    site.until_said("pp/strict", "Accepted", "True", "Accepted")
    site.kubectl("apply", "-f", "-", stdin=ON_SPOT)
    for place in ("pp/on-spot", "pp/late"):
        site.until_said(place, "Accepted", "True", "Accepted")
    assert site.condition("pp/strict")["lastTransitionTime"] == began


def test_what_is_not_checked_at_once_is_checked_when_it_is_quiet(clean: Site) -> None:
    """Until then nothing says that all is well: not the status, and not `fairlead policy list`."""
    site = clean
    listed = "---\n".join(large_policy(at) for at in range(12))
    site.kubectl("create", "-f", "-", stdin=listed)
    message = site.until_said("pp/large-11", "Satisfiable", "Unknown", "NotChecked")["message"]
    mentions(message, "not checked", "fairlead check")
    told = CliRunner().invoke(
        fairlead, ["policy", "list", "--kubeconfig", str(site.plane.kubeconfig)]
    )
    mentions(told.stdout + told.stderr, "Satisfiable is not known of", "large-0")
    # No node of this cluster is known: then that is all that is unknown.
    site.until_said("pp/large-11", "Satisfiable", "Unknown", "NoNodes")
    site.until_said("pp/large-0", "Satisfiable", "Unknown", "NoNodes")


def test_a_stored_set_that_rejects_every_pod_serves_with_an_alarm(clean: Site) -> None:
    """It was stored when nothing judged writes, as by a version before; and its warnings are told.

    What is told is what `fairlead check cluster` prints of the same object.
    """
    site = clean
    one, two = (
        pool_policy(value, name).replace("defaults", "requirements")
        for value, name in (("a", "one"), ("b", "two"))
    )
    empty = pool_policy("c", "three").replace("{pool: c}", "{}")
    site.kubectl("create", "-f", "-", stdin=f"{one}---{two}---{empty}")
    message = site.until_said("pp/two", "Accepted", "True", "AcceptedWithErrors")["message"]
    mentions(message, "every pod of every run", "one requires 'a'", "two requires 'b'")
    site.until_said("pp/two", "Satisfiable", "False", "EveryPodRejected")
    site.until_said("pp/one", "Accepted", "True", "Accepted")
    warning = site.until_said("pp/three", "Accepted", "True", "Accepted")["message"]
    mentions(warning, "spec.defaults.nodeSelector", "is empty and sets nothing")
    arguments = ["cluster", "--kubeconfig", str(site.plane.kubeconfig)]
    checked = CliRunner().invoke(check, arguments)
    assert checked.exit_code == 1
    mentions(checked.stdout, f"placementpolicies/two: {message}", warning)


def test_nodes_that_come_satisfy(clean: Site) -> None:
    """A class without a node, and the policy that wants it, say so until there is one."""
    site = clean
    node(site, "other", {"lifecycle": "normal"})
    site.kubectl("create", "-f", "-", stdin=f"{LABELLED_SPOT}---{ON_SPOT}")
    message = site.until_said("pp/on-spot", "Satisfiable", "False", "NoNode")["message"]
    mentions(message, "class spot ", "mode Constrain", "none of the 1 nodes")
    site.until_said("cc/spot", "Satisfiable", "False", "NoNode")
    node(site, "cheap", {"lifecycle": "spot"})
    site.until_said("pp/on-spot", "Satisfiable", "True", "NodesFound")
    site.until_said("cc/spot", "Satisfiable", "True", "NodesFound")


def node(site: Site, name: str, labels: Mapping[str, str]) -> None:
    metadata = {"name": name, "labels": dict(labels)}
    manifest = an_object("v1", "Node", metadata)
    site.plane.api.create(path("nodes"), manifest)


def decide(server: Served, namespace: str, count: int = 1, **spec: Json) -> None:
    """Have a replica decide on so many pods there."""
    for _ in range(count):
        response, _ = ask(server.connect(), review(pod(**spec), namespace=namespace))
        assert response.status == 200


def test_pods_are_counted_over_replicas_and_controllers(clean: Site) -> None:
    """Of every replica, also after one is gone, and after the controller has begun again."""
    site = clean
    for name in ("strict", "spot-1"):
        site.plane.create_namespace(name)
    site.kubectl("create", "-f", "-", stdin=f"{LABELLED_SPOT}---{ON_SPOT}---{STRICT}")
    site.until_said("pp/strict", "Accepted", "True", "Accepted")

    def hashes() -> list[Json]:
        found: list[Json] = site.status("pp/strict").get("servedHashes", [])
        return found

    def counts(name: str) -> tuple[int, int]:
        status = site.status(f"pp/{name}")
        return status.get("podsDecided", 0), status.get("podsRejected", 0)

    with ExitStack() as stack:
        first = stack.enter_context(site.replica("webhook-1"))
        second = stack.enter_context(site.replica("webhook-2"))
        for server in (first, second):
            server.wait_ready()
        loaded = metric(first.health_port, "fairlead_policy_reload_total", outcome="loaded")
        site.until("both replicas are known", lambda: len(hashes()) == 2)
        site.until("both serve the same", lambda: len({each["hash"] for each in hashes()}) == 1)
        assert [each["replica"] for each in hashes()] == ["webhook-1", "webhook-2"]
        site.kubectl("wait", "--for=condition=Served", "pp", "--all", "--timeout=60s")
        decide(first, "strict", 2)
        decide(second, "strict", 1, nodeSelector={"pool": "b"})
        decide(second, "spot-1", 4)
        site.until("all are counted", lambda: counts("strict") == (3, 1))
        site.until("the other's are too", lambda: counts("on-spot") == (4, 0))
        since = site.status("pp/strict")["since"]

        site.plane.stop_component(CONTROLLER)
        begin(site.plane)
        third = stack.enter_context(site.replica("webhook-3", folder=files(site)))
        third.wait_ready()
        site.until("the skew is seen", lambda: len({each["hash"] for each in hashes()}) == 2)
        assert [each["replica"] for each in hashes()][2:] == ["webhook-3"]
        decide(first, "strict", 1)
        decide(third, "strict", 5)
        site.until("it is counted on", lambda: counts("strict") == (9, 1))
        assert site.status("pp/strict")["since"] == since
        # None of these writes was news for the webhook.
        assert loaded == metric(first.health_port, "fairlead_policy_reload_total", outcome="loaded")
        site.kubectl("patch", "pp", "strict", "--type=merge", "-p", '{"spec":{"priority":1}}')
        found = site.until_said("pp/strict", "Served", "False", "NotByAll")
        mentions(found["message"], "webhook-3")
    site.kubectl("delete", "pod", "webhook-1", "webhook-2", "--force", "--grace-period=0")
    site.until("one replica is left", lambda: len(hashes()) <= 1)
    assert counts("strict") == (9, 1)


def files(site: Site) -> Path:
    """A folder with another policy of a name that the cluster has too."""
    folder = site.folder / "files"
    folder.mkdir()
    (folder / "strict.yaml").write_text(STRICT)
    return folder
