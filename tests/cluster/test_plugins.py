"""Plugins of the API server that add tolerations: webhook and commands do not take them for the
author's, and a command learns by one dry run which of them run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.accounts import account, grant_everywhere
from tests.cluster.manifests import policy_text
from tests.cluster.spaces import LOOK, Space, stamp
from tests.control_planes import StartControlPlane
from tests.eventually import eventually
from tests.objects import an_object
from tests.wording import line_with, mentions
from webhook import names
from webhook.errors import SandboxError
from webhook.placement.plugin_tolerations import EXTENDED, RESTRICTION
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.fairlead import start_webhook
from webhook.sandbox.kubectl import Kubectl

Json = dict[str, Any]
NewSpace = Callable[[str], Space]
DEFAULT: Json = {"key": "of-namespace", "operator": "Exists"}
OF_CLASS: Json = {"key": "maint", "operator": "Exists"}
OF_FLAVOR: Json = {"key": "of-flavor", "operator": "Exists"}
EVERY: Json = {"operator": "Exists"}
POLICIES = (
    policy_text(
        "few",
        "match: {podSelector: {matchLabels: {t: reject}}}",
        "requirements: {allowedTolerations: {patterns: []}}",
    )
    + policy_text(
        "less",
        "match: {podSelector: {matchLabels: {t: remove}}}",
        "requirements: {allowedTolerations: {patterns: [], remove: true}}",
    )
    + policy_text(
        "own",
        "match: {podSelector: {matchLabels: {t: default}}}",
        "defaults: {patchStrategy: IsNull, tolerations: [{key: own, operator: Exists}]}",
    )
)
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
# Kueue's definition, as far as it is read.
FLAVORS = an_object(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "resourceflavors.kueue.x-k8s.io",
    {
        "group": "kueue.x-k8s.io",
        "names": {"kind": "ResourceFlavor", "plural": "resourceflavors"},
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1beta2",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": ANYTHING},
            }
        ],
    },
)
REQUESTS = {"requests": {"cpu": "1m"}, "limits": {"example.com/fpga": "1"}}


@pytest.fixture(scope="module", params=[True, False], ids=["on", "off"])
def plugins(request: pytest.FixtureRequest) -> bool:
    """Whether the API server runs both plugins."""
    return bool(request.param)


@pytest.fixture(scope="module")
def plane(
    start_module_plane: StartControlPlane, tmp_path_factory: pytest.TempPathFactory, plugins: bool
) -> ControlPlane:
    arguments = [f"--enable-admission-plugins={EXTENDED},{RESTRICTION}"] if plugins else []
    plane = start_module_plane(Settings(extra_arguments={"kube-apiserver": arguments}))
    scheduling = {"tolerations": [OF_CLASS]}
    body = {"metadata": {"name": "gv"}, "handler": "gv", "scheduling": scheduling}
    plane.api.create("/apis/node.k8s.io/v1/runtimeclasses", body)
    plane.api.create(DEFINITIONS, FLAVORS)
    status = {"allocatable": {"cpu": "8", "pods": "110", "example.com/fpga": "4"}}
    spec = {"taints": [{"key": "example.com/fpga", "effect": "NoSchedule"}]}
    labels = {"pool": "fpga"}
    node = an_object("v1", "Node", {"name": "fpga", "labels": labels}, spec, status=status)
    plane.api.create("/api/v1/nodes", node)
    folder = tmp_path_factory.mktemp("policies")
    (folder / "p.yaml").write_text(POLICIES)
    start_webhook(plane, folder, options=["--nodes"])
    return plane


@pytest.fixture
def new_space(plane: ControlPlane, kubectl_path: Path) -> NewSpace:
    """Makes a namespace with tolerations for its pods."""

    def make(name: str) -> Space:
        plane.create_namespace(name, {})
        key = "scheduler.alpha.kubernetes.io/defaultTolerations"
        body = {"metadata": {"annotations": {key: json.dumps([DEFAULT])}}}
        plane.api.patch(f"/api/v1/namespaces/{name}", body)
        return Space(plane, Kubectl(kubectl_path, plane.kubeconfig, name), name)

    return make


def pod(name: str, label: str, *tolerations: Json, **spec: Any) -> Json:
    resources = spec.pop("resources", REQUESTS)
    container = {"name": "main", "image": "example.invalid/x", "resources": resources}
    metadata = {"name": name, "labels": {names.RUN: "r", "t": label}}
    given = {"tolerations": [*tolerations]} if tolerations else {}
    return an_object("v1", "Pod", metadata, {"containers": [container], **given, **spec})


def taken(space: Space, manifest: Json) -> Json:
    """The stored pod; a webhook hears of a new class and an annotation with some delay."""
    found: list[Json] = []

    def is_taken() -> bool:
        try:
            found[:] = [space.create(manifest, dry_run=True)]
        except SandboxError:
            return False
        return True

    eventually("the pod is taken", is_taken, period=LOOK)
    return space.create(manifest)


def keys(stored: Json) -> set[str]:
    """The keys of its tolerations, without those that every pod has."""
    found = {each.get("key", "*") for each in stored["spec"].get("tolerations", ())}
    return found - {names.TAINT_NOT_READY, names.TAINT_UNREACHABLE}


def test_a_flavor_of_kueue_is_not_the_authors(
    new_space: NewSpace, plane: ControlPlane, plugins: bool
) -> None:
    """In a namespace that trusts Kueue, the flavor's tolerations are allowed."""
    path = "/apis/kueue.x-k8s.io/v1beta2/resourceflavors"
    spec = {"nodeLabels": {"pool": "fpga"}, "tolerations": [OF_FLAVOR]}
    flavor = an_object("kueue.x-k8s.io/v1beta2", "ResourceFlavor", "fpga", spec)
    if not plane.api.get(f"{path}/fpga"):
        plane.api.create(path, flavor)
    manifest = pod("p", "reject", OF_FLAVOR, nodeSelector={"pool": "fpga"})
    manifest["metadata"]["labels"][names.KUEUE_PODSET] = "main"
    space = new_space("kueue")
    with pytest.raises(SandboxError, match="the pod tolerates of-flavor"):
        space.create(manifest)
    labels = {"metadata": {"labels": {names.KUEUE: names.KUEUE_KEEP}}}
    plane.api.patch(f"/api/v1/namespaces/{space.name}", labels)
    assert keys(taken(space, manifest)) == (OF_PLUGINS if plugins else set()) | {"of-flavor"}


OF_PLUGINS = {"of-namespace", "node.kubernetes.io/memory-pressure", "example.com/fpga"}


def test_what_plugins_add_is_allowed_and_stays(new_space: NewSpace, plugins: bool) -> None:
    """Rejecting and removing policies leave it; the class's too."""
    space = new_space("allowed")
    wanted = (OF_PLUGINS if plugins else set()) | {"maint"}
    for label in ("reject", "remove"):
        stored = taken(space, pod(label, label, runtimeClassName="gv"))
        assert keys(stored) == wanted
        assert "removed" not in stamp(stored)


def test_a_default_under_is_null_applies_beside_what_plugins_add(
    new_space: NewSpace, plugins: bool
) -> None:
    """The author wrote no toleration."""
    space = new_space("defaults")
    stored = taken(space, pod("p", "default", runtimeClassName="gv"))
    assert keys(stored) == (OF_PLUGINS if plugins else set()) | {"maint", "own"}


def test_a_request_of_zero_names_its_cure(new_space: NewSpace, plugins: bool) -> None:
    """Where the plugin runs, the toleration comes from it."""
    space = new_space("zero")
    resources = {"requests": {"example.com/fpga": "0"}, "limits": {"example.com/fpga": "0"}}
    manifest = pod("p", "reject", resources=resources)
    if not plugins:
        assert keys(taken(space, manifest)) == set()
        return
    with pytest.raises(SandboxError, match=r"remove the request of 0 example\.com/fpga"):
        space.create(manifest)


def test_the_stamp_says_what_was_removed_though_plugins_change_the_pod_again(
    new_space: NewSpace, plugins: bool, tmp_path: Path
) -> None:
    """A toleration of everything covers the API server's defaults, which come back without it."""
    space = new_space("removed")
    stored = taken(space, pod("p", "remove", EVERY))
    assert stamp(stored)["removed"] == {"less": ["*"]}
    tolerated = {each["key"] for each in stored["spec"]["tolerations"]}
    assert {names.TAINT_NOT_READY, names.TAINT_UNREACHABLE} <= tolerated, "there was a second call"
    assert plugins == ("node.kubernetes.io/memory-pressure" in tolerated)
    (tmp_path / "p.yaml").write_text(POLICIES)
    told = space.ask("explain", "pod/p", "--policies", tmp_path / "p.yaml").output
    mentions(told, "less", "took away tolerations *")


@pytest.mark.parametrize("command", ["explain", "live", "preview", "diff"])
def test_a_command_learns_by_a_dry_run_which_plugins_run(
    new_space: NewSpace, plugins: bool, command: str, tmp_path: Path
) -> None:
    """So which nodes admit a pod is known, of files and of what is in the cluster."""
    space = new_space(f"learns-{command}")
    written = pod("p", "default", nodeSelector={"pool": "fpga"})
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(written))
    (tmp_path / "p.yaml").write_text(POLICIES)
    here = ("--policies", tmp_path / "p.yaml", "--nodes", "cluster")
    files = ("-f", tmp_path / "pod.yaml", *here)
    told = {
        "explain": files,
        "preview": files,
        "live": ("deployment/d", *here),
        "diff": ("/dev/null", tmp_path / "p.yaml", "--pods", tmp_path / "pod.yaml", *here[2:]),
    }[command]
    if command == "live":
        template = {"metadata": {"labels": written["metadata"]["labels"]}, "spec": written["spec"]}
        selector = {"matchLabels": {"t": "default"}}
        spec = {"replicas": 0, "selector": selector, "template": template}
        space.create(an_object("apps/v1", "Deployment", "d", spec))
        command = "explain"
    found = space.ask(command, *told, "-n", space.name)
    assert "may run" not in found.output
    if command != "diff":
        mentions(found.output, f"{int(plugins)} of 1 nodes")
    assert space.pods() == [], "nothing is created"


def test_who_may_not_create_pods_is_told_that_it_is_unknown(
    new_space: NewSpace, tmp_path: Path
) -> None:
    """And how to say it."""
    space = new_space("reads")
    reader = account(space.kubectl, "reader", tmp_path / "reader.yaml")
    rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
    grant_everywhere(space.kubectl, "reader", "reads-nodes", rule)
    written = pod("p", "default", nodeSelector={"pool": "fpga"})
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(written))
    (tmp_path / "p.yaml").write_text(POLICIES)
    words = ("preview", "-f", tmp_path / "pod.yaml", "--policies", tmp_path / "p.yaml")
    known = ("--nodes", "cluster", "-n", space.name)
    found = space.ask(*words, *known, kubeconfig=reader)
    line_with(found.stderr, "which nodes admit it is unknown", EXTENDED, "--plugins")
    given = space.ask(*words, *known, "--plugins", EXTENDED, kubeconfig=reader)
    mentions(given.output, "can run on 1 of 1 nodes")


def test_a_device_class_provides_resources_that_no_node_has(
    new_space: NewSpace, plane: ControlPlane, tmp_path: Path
) -> None:
    """The author is not warned of it, and commands say that devices are not judged."""
    space = new_space("devices")
    resource = "example.com/dra"
    device_class = an_object(
        "resource.k8s.io/v1", "DeviceClass", "dra", {"extendedResourceName": resource}
    )
    told = {}
    for name, wanted in (
        ("extended", resource),
        ("implicit", "deviceclass.resource.kubernetes.io/dra"),
        ("misspelt", "example.com/dar"),
    ):
        manifest = pod(name, "other", EVERY, resources={"limits": {wanted: "1"}})
        file = tmp_path / f"{name}.yaml"
        file.write_text(yaml.safe_dump(manifest))
        told[name] = file
    (tmp_path / "p.yaml").write_text(POLICIES)

    def warned(name: str) -> bool:
        found = space.kubectl.run("create", "--dry-run=server", "-f", str(told[name]))
        assert found.returncode == 0, found.stderr
        return "0 of 1 nodes" in found.stderr

    def asked(name: str, *options: object) -> str:
        here = ("--policies", tmp_path / "p.yaml", "--nodes", "cluster", "-n", space.name)
        return space.ask("preview", "-f", told[name], *here, *options).output

    eventually("no class provides it", lambda: all(map(warned, told)), period=LOOK)
    mentions(asked("extended"), "no node admits it: 0 of 1 nodes")
    plane.api.create("/apis/resource.k8s.io/v1/deviceclasses", device_class)
    try:
        eventually("the webhook knows", lambda: not warned("extended"), period=LOOK)
        assert not warned("implicit")
        assert warned("misspelt")
        mentions(asked("extended"), f"at most 1 of 1 nodes (not judged: {resource})")
        mentions(asked("implicit"), "at most 1 of 1 nodes (not judged: deviceclass.")
        mentions(asked("misspelt"), "no node admits it: 0 of 1 nodes")
    finally:
        plane.api.delete("/apis/resource.k8s.io/v1/deviceclasses/dra")
