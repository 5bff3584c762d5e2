"""`fairlead install` and `uninstall`, on a real API server."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.rooms import is_stamped
from tests.cluster.sites import NAMESPACE, POLICIES, Site, build
from webhook import names
from webhook.errors import InvalidDocuments
from webhook.installation.choices import Choices, adapted, configuration_of
from webhook.installation.interception import intercept
from webhook.installation.overlays import every_key, objects_of
from webhook.installation.patience import NotInTime, Patience
from webhook.kube.client import connect
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.nodes import SHIPPED_NODES, read_pools

Json = dict[str, Any]
POLICY = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: mine}
spec:
  defaults: {nodeSelector: {pool: mine}}
"""


@pytest.fixture(scope="module")
def site(
    binaries: Mapping[str, Path], kubectl_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """A cluster for this module's tests, with a webhook that nobody has registered."""
    folder = tmp_path_factory.mktemp("install")
    settings = Settings(pools=read_pools(SHIPPED_NODES))
    with ControlPlane(folder / "control-plane", binaries, settings) as plane:
        yield build(plane, Kubectl(kubectl_path, plane.kubeconfig), folder)


@pytest.fixture
def installed(site: Site) -> Site:
    """The cluster with Fairlead as it is by default, whatever was there before."""
    site.install()
    return site


def results(site: Site, *options: str) -> dict[str, str]:
    """What became of each object."""
    found = json.loads(site.install("-o", "json", *options).stdout)["objects"]
    return {each["object"]: each["result"] for each in found}


def eventually(holds: Callable[[], bool]) -> None:
    """Wait for it."""
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_it_is_done_when_a_pod_of_a_run_is_placed(installed: Site) -> None:
    """All objects are there, and again there is nothing to do."""
    pod = installed.create_pod("placed", run="r")
    assert is_stamped(pod)
    assert pod["spec"]["nodeSelector"] == {"pool": "a"}
    again = results(installed)
    assert set(again.values()) == {"unchanged"}
    assert "CustomResourceDefinition runs.fairlead.dev" in again
    assert len(again) == len(objects_of("default"))


def test_what_is_applied_is_what_the_manifests_say(installed: Site, tmp_path: Path) -> None:
    """kubectl finds no difference between the cluster and what --dry-run prints."""
    shown = installed.run("install", "--dry-run", *installed.at_its_address)
    assert shown.exit_code == 0
    file = tmp_path / "shown.yaml"
    file.write_text(shown.stdout)
    done = installed.kubectl.run("diff", "--server-side", "--force-conflicts", "-f", str(file))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_an_upgrade_changes_what_differs_and_leaves_what_others_did(installed: Site) -> None:
    """A new image is taken; labels and objects of the admin's stay."""
    kubectl = installed.kubectl.within(NAMESPACE)
    kubectl("label", "deployment", "fairlead-webhook", "team=platform")
    changed = results(installed, "--image", "example.invalid/fairlead:0.1.0")
    deployments = {f"Deployment {NAMESPACE}/{name}" for name in (names.WEBHOOK, names.CONTROLLER)}
    assert {name for name, result in changed.items() if result != "unchanged"} == deployments
    found = kubectl.json("get", "deployment", "fairlead-webhook")
    assert found["metadata"]["labels"]["team"] == "platform"
    (container,) = found["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "example.invalid/fairlead:0.1.0"


def test_policies_that_somebody_changed_stay(installed: Site, tmp_path: Path) -> None:
    """Unless others are given; those that install put there itself are brought up to date."""
    name = f"ConfigMap {NAMESPACE}/fairlead-policies"
    kubectl = installed.kubectl.within(NAMESPACE)

    def data() -> Json:
        found: Json = kubectl.json("get", "configmap", "fairlead-policies")["data"]
        return found

    shipped = data()
    patch = json.dumps({"data": {"mine.yaml": POLICY}})
    kubectl("patch", "configmap", "fairlead-policies", "--type=merge", "-p", patch)
    assert results(installed)[name] == "kept"
    assert data() == {**shipped, "mine.yaml": POLICY}
    folder = tmp_path / "mine"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "mine.yaml").write_text(POLICY)
    assert results(installed, "--policies", str(folder))[name] == "changed"
    assert data() == {"sub-mine.yaml": POLICY}
    # Nobody has changed those since.
    assert results(installed)[name] == "changed"
    assert data() == shipped


def test_policies_with_errors_are_not_installed(site: Site, tmp_path: Path) -> None:
    """Every error is told, and no cluster is asked for anything."""
    (tmp_path / "bad.yaml").write_text(POLICY.replace("defaults", "default"))
    with pytest.raises(InvalidDocuments, match=r"bad\.yaml:6"):
        site.run("install", "--policies", str(tmp_path), "--context", "none")


def test_sources_are_added_and_taken_away(installed: Site) -> None:
    """Their pods are sent, and not any more; entries of the admin's own are left alone."""
    site = installed
    own = {**site.configuration()["webhooks"][0], "name": "audit.example.invalid", "rules": []}
    patch = json.dumps([{"op": "add", "path": "/webhooks/-", "value": own}])
    site.kubectl("patch", "mutatingwebhookconfiguration", "fairlead", "--type=json", "-p", patch)
    site.install("--source", "mlrun", "--source", "spark")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "mlrun", "labels": {"mlrun/class": "job"}},
        "spec": {"containers": [{"name": "main", "image": "example.invalid/none"}]},
    }
    dry_run = ("create", "--dry-run=server", "-f", "-")
    assert is_stamped(site.kubectl.json(*dry_run, stdin=json.dumps(pod)))
    site.install()
    eventually(lambda: not is_stamped(site.kubectl.json(*dry_run, stdin=json.dumps(pod))))
    entries = [each["name"] for each in site.configuration()["webhooks"]]
    assert entries == ["pods-0.fairlead.dev", "namespaces.fairlead.dev", "audit.example.invalid"]
    site.kubectl("delete", "mutatingwebhookconfiguration", "fairlead")


def test_another_overlay_takes_away_what_only_the_first_had(installed: Site) -> None:
    """The guard goes with the mode that it guards."""
    guarded = results(installed, "--overlay", "fail-open-guarded-deny", "--source", "mlrun")
    assert guarded["ValidatingAdmissionPolicyBinding fairlead-stamp-mlrun-0"] == "created"
    policies = {each["failurePolicy"] for each in installed.configuration()["webhooks"]}
    assert policies == {"Ignore"}
    after = results(installed)
    assert after["ValidatingAdmissionPolicy fairlead-stamp"] == "deleted"
    assert "fairlead-stamp" not in installed.kubectl("get", "validatingadmissionpolicy")
    policies = {each["failurePolicy"] for each in installed.configuration()["webhooks"]}
    assert policies == {"Fail"}
    installed.kubectl("delete", "validatingadmissionpolicybinding", "fairlead-stamp-mlrun-0")


def leftovers(site: Site) -> list[str]:
    """Objects of any overlay that are there still."""
    return [
        str(key)
        for key in sorted(every_key())
        if site.plane.api.call("GET", key.path)[0] == HTTPStatus.OK
    ]


def test_uninstall_leaves_what_it_says(installed: Site) -> None:
    """Definitions and their objects, unless they are to go too; what is somebody else's, always."""
    site = installed
    site.kubectl("apply", "-f", "-", stdin=POLICIES)
    site.kubectl("create", "secret", "generic", names.AUTHORITY_SECRET, "-n", NAMESPACE)
    mine = ("configmap", "mine", "-n", NAMESPACE)
    site.kubectl("create", *mine)
    assert site.run("uninstall", stdin="n\n").exit_code == 1
    assert site.configuration()
    done = site.run("uninstall", "--yes")
    assert done.exit_code == 0
    runs, policies, classes = (
        f"CustomResourceDefinition {name}.fairlead.dev"
        for name in (names.RUNS, names.PLACEMENT_POLICIES, names.CAPACITY_CLASSES)
    )
    namespace = f"Namespace {NAMESPACE}"
    assert f"left: ConfigMap {NAMESPACE}/mine, and so the namespace: not Fairlead's" in done.stdout
    assert f"left: {runs}, and every Run" in done.stdout
    for kept in (policies, classes):
        assert f"left: {kept}, and every object of it" in done.stdout
    assert leftovers(site) == sorted([runs, policies, classes, namespace])
    assert "pool" in site.kubectl("get", "placementpolicies")
    site.kubectl("get", *mine)
    # No pod is refused, nor placed.
    assert not is_stamped(site.create_pod("free", run="r"))
    site.kubectl("delete", *mine)
    deleted = [runs, policies, classes, namespace]
    assert site.uninstall().stdout == "".join(f"deleted {each}\n" for each in deleted)
    assert leftovers(site) == []
    nothing = site.run("uninstall", "--yes")
    assert nothing.stdout == "there was nothing of Fairlead's to delete\n"


def test_what_kubectl_applied_is_taken_over(site: Site) -> None:
    """Whoever began with kubectl can go on with install."""
    site.uninstall()
    shown = site.run("install", "--dry-run", *site.at_its_address).stdout
    for _ in range(2):
        # The Runs' definition is served a moment after it was applied.
        site.kubectl.run("apply", "-f", "-", stdin=shown)
    assert set(results(site).values()) <= {"changed", "unchanged"}


def test_time_that_is_over_says_what_is_missing_and_why(site: Site) -> None:
    """A webhook that does not answer: the API server's words, and the doctor's."""
    nobody = ("--webhook-url", "https://127.0.0.1:1/mutate", "--webhook-ca", str(site.authority))
    done = site.run("install", *nobody, "--timeout", "3")
    assert done.exit_code == 1
    assert "a pod of a run by dry run: not within 3 s" in done.stderr
    assert "the API server does not reach the webhook" in done.stderr
    assert "cure:" in done.stderr
    # What was missing is there now, and the same command goes on.
    site.install()


def test_a_pod_that_cannot_start_is_told_with_its_cure(installed: Site) -> None:
    """Here it asks for a node that is not there; the webhook configuration is not touched."""
    site = installed
    before = site.configuration()["metadata"]["resourceVersion"]
    path = "/spec/template/spec/nodeSelector"
    deployment = ("patch", "-n", NAMESPACE, "deployment", "fairlead-controller", "--type=json")
    add = json.dumps([{"op": "add", "path": path, "value": {"pool": "nowhere"}}])
    site.kubectl(*deployment, "-p", add)
    pods = ("get", "pods", "-n", NAMESPACE, "-o", "json")
    eventually(lambda: '"reason": "Unschedulable"' in site.kubectl(*pods))
    done = site.run("install", "--timeout", "3")
    assert done.exit_code == 1
    assert "Deployment fairlead-system/fairlead-controller: not within 3 s" in done.stderr
    assert "a pod waits for a node: 0/" in done.stderr
    assert site.configuration()["metadata"]["resourceVersion"] == before
    site.kubectl(*deployment, "-p", json.dumps([{"op": "remove", "path": path}]))


def test_entries_wait_for_their_authority_before_they_have_rules(site: Site) -> None:
    """No pod is refused because nobody has told the API server yet whom to believe."""
    objects = adapted(objects_of("default"), Choices(sources=("mlrun",)))
    found = configuration_of(objects)
    assert found
    key, wanted = found

    def rules() -> list[bool]:
        return [bool(each.get("rules")) for each in site.configuration()["webhooks"]]

    def publish(*entries: str) -> None:
        bundle = base64.b64encode(site.authority.read_bytes()).decode()
        applied = {
            "apiVersion": wanted["apiVersion"],
            "kind": wanted["kind"],
            "metadata": {"name": "fairlead"},
            "webhooks": [{"name": name, "clientConfig": {"caBundle": bundle}} for name in entries],
        }
        site.kubectl(
            "apply", "--server-side", "--field-manager=fairlead-certificates", "-f", "-",
            stdin=json.dumps(applied),
        )  # fmt: skip

    async def run(configuration: Json, seconds: float) -> str:
        async with connect(site.plane.kubeconfig) as client:
            return await intercept(client, key, configuration, Patience(seconds, period=0.05))

    ours = configuration_of(adapted(objects_of("default"), Choices()))
    assert ours
    site.kubectl("delete", "mutatingwebhookconfiguration", "--ignore-not-found", "fairlead")
    with pytest.raises(NotInTime, match=r"pods-0\.fairlead\.dev.* has no caBundle yet"):
        asyncio.run(run(ours[1], 0.2))
    assert rules() == [False, False]
    publish("pods-0.fairlead.dev", "namespaces.fairlead.dev")
    assert asyncio.run(run(ours[1], 30)) == "changed"
    assert rules() == [True, True]
    # One more: the others go on, and still see its pods where they carry our mark too.
    before = site.configuration()["webhooks"][0]["objectSelector"]
    with pytest.raises(NotInTime, match=r"^the webhook's authority: .*for mlrun-0"):
        asyncio.run(run(wanted, 0.2))
    assert rules() == [True, True, False]
    assert site.configuration()["webhooks"][0]["objectSelector"] == before
    publish("pods-0.fairlead.dev", "namespaces.fairlead.dev", "mlrun-0.fairlead.dev")
    asyncio.run(run(wanted, 30))
    assert rules() == [True, True, True]
    assert site.configuration()["webhooks"][0]["objectSelector"] != before
    # One less: whoever keeps certificates owns a field of it, and it goes all the same.
    asyncio.run(run(ours[1], 30))
    assert rules() == [True, True]
    assert all(each["clientConfig"]["caBundle"] for each in site.configuration()["webhooks"])
    site.kubectl("delete", "mutatingwebhookconfiguration", "fairlead")
