"""A webhook that takes its policies from the objects of a real API server."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.admission.reviews import review
from tests.cli.served import Served, ask, pool_in, pool_policy, served
from tests.cluster.manifests import LABELLED_SPOT
from tests.cluster.spaces import metric
from tests.control_planes import StartControlPlane
from tests.eventually import BUDGET, eventually
from tests.manifests.generated import MANIFESTS
from tests.objects import an_object
from tests.policy.examples import EVERYTHING
from tests.wording import mentions
from webhook import names
from webhook.cli import fairlead
from webhook.interception import webhooks
from webhook.policy.crd.definitions import custom_resource_definitions
from webhook.policy.load import load
from webhook.sandbox.api import install_definitions
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.rights import account

# Enough for what only stores and tells.
SMALL = Settings(components=("etcd", "kube-apiserver"))
RESOURCES = tuple(names.POLICY_RESOURCES.values())
DEFINITIONS = tuple(f"{resource}.{names.GROUP}" for resource in RESOURCES)
RIGHTS = MANIFESTS / "base" / "policies-rights.yaml"
SETTING = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: setting}
spec: {overrides: {capacity: [{class: spot, mode: Constrain}]}}
"""


@pytest.fixture(scope="module")
def plane(start_module_plane: StartControlPlane) -> ControlPlane:
    """An API server of the module's own, with the definitions; the shared one has more kinds."""
    return start_module_plane(SMALL)


@pytest.fixture(scope="module")
def defined(plane: ControlPlane, kubectl_for: Callable[[ControlPlane], Kubectl]) -> Kubectl:
    """kubectl for that API server."""
    for definition in custom_resource_definitions().values():
        install_definitions(plane.api, [definition])
    return kubectl_for(plane)


@pytest.fixture
def kubectl(defined: Kubectl) -> Kubectl:
    """kubectl for a cluster that has the definitions, and no policies."""
    defined("delete", ",".join(RESOURCES), "--all")
    return defined


@pytest.fixture
def empty(start_control_plane: StartControlPlane) -> ControlPlane:
    """An API server of one test's own, for who restarts it or takes the definitions away.

    One that lost its definitions, or has just started, may take minutes until it lets go of the
    next ones: in CI `kubectl delete crd` once waited for more than three.
    """
    return start_control_plane(SMALL)


def define(kubectl: Kubectl, definitions: Sequence[str] = DEFINITIONS) -> None:
    """Give the cluster the definitions."""
    for definition in definitions:
        kubectl("apply", "--server-side", "-f", f"manifests/crds/{definition}.yaml")
    kubectl("wait", "--for=condition=Established", *(f"crd/{each}" for each in definitions))


def serving(
    plane: ControlPlane, folder: Path, *, allowed: bool = True
) -> AbstractContextManager[Served]:
    """`fairlead serve --policies-from-cluster`, which may read policies unless told otherwise."""
    # Those of policies from files lack the rights that are about policies.
    kubeconfig = account(plane, names.WEBHOOK, () if allowed else ("--policies",))
    return served(
        folder,
        *("--grace", "0"),
        policies=("--policies-from-cluster",),
        cluster=("--kubeconfig", str(kubeconfig)),
    )


def wait_for_set(server: Served, *texts: str, budget: float = BUDGET) -> None:
    """Wait until the set that serves is that of these documents, were they in files."""
    files = {f"{at}.yaml": text.encode() for at, text in enumerate(texts)}
    digest = load(files).policies.hash
    eventually(
        "this set serves",
        lambda: metric(server.health_port, "fairlead_policy_set_info", hash=digest),
        explain=server.readiness,
        budget=budget,
    )


def wait_for_reason(server: Served, *parts: str) -> str:
    """Wait until the reason of the condition of the policies has all of these parts."""

    def reason() -> str:
        return str(server.readiness()[1]["policies"]["reason"])

    def so() -> str:
        found = reason()
        return found if all(part in found for part in parts) else ""

    return eventually(f"the reason has {parts}", so, explain=reason)


def pool(server: Served) -> str:
    """The pool that a pod is given now."""
    response, body = ask(server.connect(), review(namespace="default"))
    assert response.status == 200
    return pool_in(body)


def test_the_set_follows_the_objects_of_the_cluster(
    plane: ControlPlane, kubectl: Kubectl, tmp_path: Path
) -> None:
    """Each write of a policy or class is served, with the hash that files would have."""
    with serving(plane, tmp_path) as server:
        server.wait_ready()
        wait_for_set(server)

        kubectl("apply", "-f", "-", stdin=pool_policy("a"))
        wait_for_set(server, pool_policy("a"))
        assert pool(server) == "a"

        kubectl("apply", "-f", "-", stdin=pool_policy("b"))
        wait_for_set(server, pool_policy("b"))
        assert pool(server) == "b"

        kubectl("apply", "-f", "-", stdin=f"{LABELLED_SPOT}---{SETTING}")
        wait_for_set(server, pool_policy("b"), LABELLED_SPOT, SETTING)
        changed = LABELLED_SPOT.replace("lifecycle: spot", "lifecycle: cheap")
        kubectl("apply", "-f", "-", stdin=changed)
        wait_for_set(server, pool_policy("b"), changed, SETTING)

        kubectl("delete", "pp", "setting", "pool")
        wait_for_set(server, changed)
        kubectl("delete", "cc", "spot")
        wait_for_set(server)
        for resource in RESOURCES:
            age = metric(server.health_port, "fairlead_cache_age_seconds", resource=resource)
            assert age < float("inf")


def test_every_field_has_the_hash_of_its_file(
    plane: ControlPlane, kubectl: Kubectl, tmp_path: Path
) -> None:
    """Nothing that the API server does to an object changes what it says; and it ends well."""
    kubectl("apply", "-f", "-", stdin=EVERYTHING)
    with serving(plane, tmp_path) as server:
        wait_for_set(server, EVERYTHING)
        server.process.send_signal(signal.SIGTERM)
        code, messages = server.end()
    assert code == 0
    assert not any("Traceback" in message for message in messages)


def test_a_cluster_without_the_definitions_is_waited_for_and_their_loss_is_survived(
    empty: ControlPlane, kubectl_for: Callable[[ControlPlane], Kubectl], tmp_path: Path
) -> None:
    """Not ready at first, with the cure; later the last good set serves on, and says why."""
    kubectl = kubectl_for(empty)
    with serving(empty, tmp_path) as server:
        for definition in DEFINITIONS:
            cure = f"kubectl apply -f manifests/crds/{definition}.yaml"
            wait_for_reason(server, "not listed yet", cure)
        assert server.readiness()[0] == 503
        # An installation of before there were exceptions has none.
        define(kubectl, DEFINITIONS[:2])
        server.wait_ready()
        wait_for_reason(server, "loaded at", "placementexceptions.fairlead.dev", "there are none")
        define(kubectl)
        kubectl("apply", "-f", "-", stdin=f"{LABELLED_SPOT}---{SETTING}---{pool_policy('a')}")
        wait_for_set(server, LABELLED_SPOT, SETTING, pool_policy("a"))

        kubectl("delete", "crd", *DEFINITIONS)
        wait_for_reason(server, "vanished with the definition", "loaded at")
        assert server.readiness()[0] == 200
        assert pool(server) == "a"
        wait_for_set(server, LABELLED_SPOT, SETTING, pool_policy("a"))

        define(kubectl)
        kubectl("apply", "-f", "-", stdin=pool_policy("c"))
        wait_for_set(server, pool_policy("c"))
        eventually("all is well", lambda: "vanished" not in wait_for_reason(server, "loaded at"))


def test_the_manifests_rights_are_enough_and_each_is_needed(
    plane: ControlPlane, kubectl: Kubectl, tmp_path: Path
) -> None:
    """Without them it is not ready, and says which; with list alone it hears of no change."""
    rights = RIGHTS.read_text()
    kubectl("delete", "--ignore-not-found", "-f", str(RIGHTS))
    with serving(plane, tmp_path, allowed=False) as server:
        for resource in RESOURCES:
            wait_for_reason(server, "not listed yet", f"may not list {resource}")
        wait_for_reason(server, "list and watch of placementpolicies")
        kubectl("apply", "-f", "-", stdin=rights.replace("[list, watch]", "[list]"))
        for resource in RESOURCES:
            wait_for_reason(server, "loaded at", f"may not watch {resource}")
        kubectl("apply", "-f", "-", stdin=rights)
        eventually("all is allowed", lambda: "cannot" not in wait_for_reason(server, "loaded at"))
        kubectl("apply", "-f", "-", stdin=pool_policy("a"))
        wait_for_set(server, pool_policy("a"))
        kubectl("delete", "pp", "pool")
        wait_for_set(server)


def test_what_selects_a_pod_is_read_in_its_namespace(
    kubectl: Kubectl, plane: ControlPlane, tmp_path: Path
) -> None:
    """A label of a policy that the cluster has makes a Service send the pod requests."""
    sets = {"defaults": {"labels": {"team": "ml"}}}
    kubectl.create(an_object(f"{names.GROUP}/v1alpha1", names.POLICY_KIND, "team", sets))
    plane.create_namespace("beside")
    web = an_object("v1", "Service", "web", {"selector": {"team": "ml"}, "ports": [{"port": 80}]})
    for space, name in (("default", "web"), ("beside", "elsewhere")):
        web["metadata"] = {"name": name, "namespace": space}
        kubectl("apply", "-f", "-", stdin=json.dumps(web))
    file = tmp_path / "pod.json"
    lone = an_object("v1", "Pod", {"name": "p", "labels": {names.RUN: "r"}})
    lone["spec"] = {"containers": [{"name": "main", "image": "i"}]}
    kind = "MutatingWebhookConfiguration"
    name = names.WEBHOOK_CONFIGURATION
    sent = an_object("admissionregistration.k8s.io/v1", kind, name, webhooks=webhooks())
    kubectl.create(sent)
    # That of the file is the same Service, and counts once.
    web["metadata"] = {"name": "web", "namespace": "default"}
    try:
        for items in ([lone], [lone, web]):
            file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
            given = ("preview", "-f", str(file), "--policies", "cluster")
            done = CliRunner().invoke(fairlead, [*given, "--kubeconfig", str(plane.kubeconfig)])
            assert done.exit_code == 0, done.output
            mentions(done.stderr, "policy team: labels: Service web sends the pod requests")
    finally:
        kubectl("delete", kind, name)
