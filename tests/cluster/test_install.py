"""`fairlead install` and `uninstall`, on a real API server."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import signal
import subprocess
import threading
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from starlette.types import Receive, Scope, Send

from tests.cluster.accounts import account
from tests.cluster.manifests import LABELLED_SPOT
from tests.cluster.paths import path
from tests.cluster.sites import EVERYTHING, NAMESPACE, WEBHOOK, Site, build
from tests.cluster.spaces import is_stamped
from tests.control_planes import StartControlPlane
from tests.eventually import eventually
from tests.objects import an_object
from tests.server.serving import running
from tests.ui.served_pages import PROGRAM
from tests.wording import line_with, mentions
from webhook import names, validating
from webhook.cli import fairlead
from webhook.errors import InstallationError
from webhook.installation.apply import NotInTime, Patience
from webhook.installation.choices import Choices, adapted
from webhook.installation.manifests import CONTROLLER, INTERCEPTION, every_key, render
from webhook.installation.policy_files import SHIPPED
from webhook.installation.policy_plan import marked
from webhook.installation.stored_options import read_options
from webhook.installation.webhook_configuration import intercept
from webhook.kube.client import connect
from webhook.sandbox.control_plane import Settings
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.simulated_nodes import SHIPPED_NODES, read_pools

Json = dict[str, Any]
POLICY = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: mine}
spec:
  defaults: {nodeSelector: {pool: mine}}
"""
RESOURCES = (names.RUNS, *names.POLICY_RESOURCES.values())
PATCHED = json.dumps({"spec": {"defaults": {"nodeSelector": {"pool": "theirs"}}}})


@pytest.fixture(scope="module")
def site(start_module_plane: StartControlPlane, kubectl_path: Path) -> Site:
    """A cluster for this module's tests, with a webhook that nobody has registered."""
    settings = Settings(pools=read_pools(SHIPPED_NODES))
    plane = start_module_plane(settings)
    return build(plane, Kubectl(kubectl_path, plane.kubeconfig))


@pytest.fixture
def installed(site: Site) -> Site:
    """The cluster with Fairlead as it is by default, whatever was there before, and a policy."""
    site.install()
    site.bring_policy()
    return site


def results(site: Site, *options: str) -> dict[str, str]:
    """What became of each object."""
    found = json.loads(site.install("-o", "json", *options).stdout)["objects"]
    return {each["object"]: each["result"] for each in found}


def foretold(site: Site, *options: str) -> dict[str, str]:
    """What `--dry-run` says that becomes of each object, in the words of `results`."""
    shown = site.run("install", "--reset", "--dry-run", *site.at_its_address, *options)
    assert shown.exit_code == 0, shown.output
    words = re.sub(r"^would (create|change|delete) ", r"\1d ", shown.stdout, flags=re.MULTILINE)
    lines = [line.partition(" ") for line in words.splitlines()]
    return {key: result for result, _, key in lines}


def test_it_is_done_when_a_pod_of_a_run_is_placed(installed: Site) -> None:
    """All objects are there, and again there is nothing to do."""
    pod = installed.create_pod("placed", run="r")
    assert is_stamped(pod)
    assert pod["spec"]["nodeSelector"] == {"pool": "a"}
    again = results(installed)
    assert set(again.values()) == {"unchanged"}
    assert "CustomResourceDefinition runs.fairlead.dev" in again
    assert len(again) == len(adapted(Choices()))


def test_what_is_applied_is_what_the_manifests_say(installed: Site, tmp_path: Path) -> None:
    """kubectl finds no difference between the cluster and what --dry-run prints as YAML."""
    shown = installed.run("install", "--dry-run", "-o", "yaml", *installed.at_its_address)
    assert shown.exit_code == 0
    file = tmp_path / "shown.yaml"
    file.write_text(shown.stdout)
    done = installed.kubectl.run("diff", "--server-side", "--force-conflicts", "-f", str(file))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_an_upgrade_changes_what_differs_and_leaves_what_others_did(installed: Site) -> None:
    """A new image is taken; labels and objects of the admin's stay."""
    kubectl = installed.kubectl.within(NAMESPACE)
    kubectl("label", "deployment", "fairlead-webhook", "team=platform")
    expected = foretold(installed, "--image", "example.invalid/fairlead:0.1.0")
    changed = results(installed, "--image", "example.invalid/fairlead:0.1.0")
    assert expected == changed
    deployments = {f"Deployment {NAMESPACE}/{name}" for name in (names.WEBHOOK, names.CONTROLLER)}
    assert {name for name, result in changed.items() if result != "unchanged"} == deployments
    found = kubectl.json("get", "deployment", "fairlead-webhook")
    assert found["metadata"]["labels"]["team"] == "platform"
    (container,) = found["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "example.invalid/fairlead:0.1.0"


def test_a_dry_run_asks_about_each_program_once(installed: Site) -> None:
    """What stands in the way, what is lost and what would change read the same answer."""
    options = ("--dry-run", "-v", "--image", "example.invalid/fairlead:9")
    asked = installed.run("install", *options, *installed.at_its_address).stderr.splitlines()
    for name in (names.WEBHOOK, names.CONTROLLER):
        patched = [line for line in asked if "PATCH" in line and f"/deployments/{name}" in line]
        assert len(patched) == 1, patched


def test_policies_that_a_user_changed_stay(installed: Site, tmp_path: Path) -> None:
    """Each by itself; those that install put there itself are brought up to date."""
    spot, mine = "CapacityClass spot", "PlacementPolicy mine"
    change = [{"op": "add", "path": "/spec/nodes/-", "value": {"labels": {"my": "spot"}}}]
    installed.kubectl("patch", "capacityclass", "spot", "--type=json", "-p", json.dumps(change))
    assert foretold(installed)[spot] == "kept"
    assert results(installed)[spot] == "kept"
    nodes = installed.kubectl.json("get", "capacityclass", "spot")["spec"]["nodes"]
    assert nodes[-1] == {"labels": {"my": "spot"}}
    folder = tmp_path / "mine"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "mine.yaml").write_text(POLICY)
    given = ("--policies", str(folder))
    assert results(installed, *given)[mine] == "created"
    assert results(installed, *given)[mine] == "unchanged"
    (folder / "sub" / "mine.yaml").write_text(POLICY.replace("pool: mine", "pool: other"))
    assert results(installed, *given)[mine] == "changed"
    assert pool_of(installed) == "other"
    installed.kubectl("patch", "placementpolicy", "mine", "--type=merge", "-p", PATCHED)
    (folder / "sub" / "mine.yaml").write_text(POLICY)
    assert results(installed, *given)[mine] == "kept"
    assert pool_of(installed) == "theirs"
    # Without them nobody takes it away.
    assert mine not in results(installed)
    assert pool_of(installed) == "theirs"
    installed.kubectl("delete", "placementpolicy", "mine")
    removal = [{"op": "remove", "path": f"/spec/nodes/{len(nodes) - 1}"}]
    installed.kubectl("patch", "capacityclass", "spot", "--type=json", "-p", json.dumps(removal))
    assert results(installed)[spot] == "unchanged"


def pool_of(site: Site) -> str:
    """What the policy `mine` says."""
    spec = site.plane.api.get(path(names.PLACEMENT_POLICIES, "mine"))["spec"]
    return str(spec["defaults"]["nodeSelector"]["pool"])


def test_sources_are_added_and_taken_away(installed: Site) -> None:
    """Their pods are sent, and not any more; entries of the admin's own are left alone."""
    site = installed
    own = {**site.configuration()["webhooks"][0], "name": "audit.example.invalid", "rules": []}
    added = {"op": "add", "path": "/webhooks/-", "value": own}
    site.change("mutatingwebhookconfigurations", "fairlead", added)
    site.install("--source", "mlrun", "--source", "spark")
    pod = an_object(
        "v1",
        "Pod",
        {"name": "mlrun", "labels": {"mlrun/class": "job"}},
        {"containers": [{"name": "main", "image": "example.invalid/none"}]},
    )
    dry_run = f"{path('pods', namespace='default')}?dryRun=All"
    assert is_stamped(site.plane.api.create(dry_run, pod))
    site.install()
    eventually(
        "its pods are sent no more",
        lambda: not is_stamped(site.plane.api.create(dry_run, pod)),
    )
    entries = [each["name"] for each in site.configuration()["webhooks"]]
    assert entries == ["pods-0.fairlead.dev", "namespaces.fairlead.dev", "audit.example.invalid"]
    site.plane.api.delete(path("mutatingwebhookconfigurations", "fairlead"))


def test_nodes_are_watched_until_an_installation_without_them(installed: Site) -> None:
    """The flag and the right come and go together, and the doctor sees one without the other."""
    site = installed
    webhook = f"Deployment {NAMESPACE}/{names.WEBHOOK}"
    role = f"{names.WEBHOOK}-nodes"
    rights = {f"{kind} {role}" for kind in ("ClusterRole", "ClusterRoleBinding")}
    first = results(site, "--nodes")
    assert {name for name, result in first.items() if result == "created"} == rights
    assert first[webhook] == "changed"
    site.kubectl("patch", "clusterrole", role, "--type=merge", "-p", '{"rules": []}')
    (finding,) = [each for each in site.findings() if "--nodes" in each["message"]]
    assert (finding["severity"], finding["check"]) == ("warning", "permissions")
    assert finding["cure"].startswith("fairlead install --nodes")
    after = results(site)
    assert {name for name, result in after.items() if result == "deleted"} == rights
    assert after[webhook] == "changed"


def test_without_options_it_installs_as_last_time(installed: Site) -> None:
    """Nothing is taken away, and what somebody has broken is repaired."""
    site = installed
    chosen = ("--overlay", "fail-open-guarded", "--source", "mlrun", "--nodes", "--policy-reports")
    site.install(*chosen, "--image", "example.invalid/fairlead:0.1.0")
    before = written(site)
    again = site.run("install", "-o", "json")
    assert again.exit_code == 0, again.output
    found = {each["result"] for each in json.loads(again.stdout)["objects"]}
    assert found == {"unchanged"}
    assert "takes away" not in again.stderr
    mentions(again.stderr, "as last time", "--source mlrun --nodes --policy-reports")
    assert written(site) == before
    # What is only missing comes back without a question.
    site.plane.api.delete(path("mutatingwebhookconfigurations", "fairlead"))
    site.kubectl("delete", "clusterrole", f"{names.WEBHOOK}-nodes")
    assert site.run("install").exit_code == 0
    entries = {each["name"]: each["failurePolicy"] for each in site.configuration()["webhooks"]}
    assert entries["mlrun-0.fairlead.dev"] == "Ignore"
    assert site.plane.api.get(path("clusterroles", f"{names.WEBHOOK}-nodes"))
    # Whoever applies the manifests leaves the options alone.
    plain = json.dumps(render()[CONTROLLER])
    for how in ((), ("--server-side", "--force-conflicts")):
        applied = site.kubectl.run(
            "apply", "--dry-run=server", "-o", "json", *how, "-f", "-", stdin=plain
        )
        options = read_options(json.loads(applied.stdout))
        assert options
        assert options.sources == ("mlrun",)
    # An option is added to those of last time.
    done = site.run("install", "--source", "spark")
    assert done.exit_code == 0, done.output
    names_of = {each["name"] for each in site.configuration()["webhooks"]}
    assert {"mlrun-0.fairlead.dev", "spark-0.fairlead.dev"} <= names_of


def test_what_is_taken_away_is_told_and_confirmed_before(installed: Site) -> None:
    """Without a terminal it is refused, and nothing has been changed."""
    site = installed
    chosen = ("--overlay", "fail-open-guarded", "--source", "mlrun", "--nodes", "--policy-reports")
    site.install(*chosen, "--image", "example.invalid/fairlead:0.1.0")
    before = written(site)
    at = ("--kubeconfig", str(site.plane.kubeconfig), *site.at_its_address)
    refused = CliRunner().invoke(fairlead, ["install", *at, "--reset"])
    assert isinstance(refused.exception, InstallationError)
    assert refused.stdout == ""
    mentions(str(refused.exception), "no terminal", "--yes", "nothing has been changed")
    for told in (
        ("ClusterRole fairlead-webhook-nodes is deleted",),
        ("ValidatingAdmissionPolicy fairlead-stamp is deleted",),
        ("loses entry mlrun-0.fairlead.dev",),
        ("entry pods-0.fairlead.dev", "from failurePolicy Ignore to failurePolicy Fail"),
        ("image of webhook", "from example.invalid/fairlead:0.1.0 to fairlead:0.1.0"),
        ("loses argument --nodes of webhook",),
        ("loses argument --policy-reports of controller",),
    ):
        line_with(refused.stderr, *told)
    assert written(site) == before
    shown = site.run("install", *site.at_its_address, "--image", "example.invalid/f:2", "--dry-run")
    assert shown.exit_code == 0
    line_with(shown.stderr, "image of webhook", "to example.invalid/f:2")
    assert "loses" not in shown.stderr


def test_objects_that_another_tool_manages_are_refused(installed: Site) -> None:
    """Each tool by what it writes itself; the message names what applies. Nothing is changed."""
    site = installed
    role = path("clusterroles", names.CONTROLLER)
    flux = "kustomize.toolkit.fluxcd.io"
    marks: list[tuple[Json, str]] = [
        (
            {"annotations": {"argocd.argoproj.io/tracking-id": "ml:rbac/ClusterRole:/x"}},
            "argocd app sync ml",
        ),
        (
            {"labels": {f"{flux}/name": "ml", f"{flux}/namespace": "flux-system"}},
            "flux reconcile kustomization ml --namespace flux-system",
        ),
        (
            {
                "labels": {names.MANAGED_BY: "Helm"},
                "annotations": {
                    names.HELM_RELEASE: "ml",
                    "meta.helm.sh/release-namespace": "tools",
                },
            },
            "helm upgrade ml CHART --namespace tools --reset-then-reuse-values",
        ),
    ]
    for metadata, cure in marks:
        site.plane.api.call(
            "PATCH", role, {"metadata": metadata}, content_type="application/merge-patch+json"
        )
        before = written(site)
        for options in ((), ("--reset", "--yes"), ("--dry-run",)):
            with pytest.raises(InstallationError) as refused:
                site.run("install", *options)
            mentions(str(refused.value), f"ClusterRole {names.CONTROLLER}", cure, "Nothing has")
        assert written(site) == before
        without = {kind: dict.fromkeys(found) for kind, found in metadata.items()}
        site.plane.api.call(
            "PATCH", role, {"metadata": without}, content_type="application/merge-patch+json"
        )
    assert site.run("install").exit_code == 0


def test_objects_that_another_tool_manages_are_not_uninstalled(installed: Site) -> None:
    """It would write them again; the message names the command that removes them there."""
    site = installed
    role = path("clusterroles", names.CONTROLLER)
    own = {"annotations": {names.HELM_RELEASE: "ml"}, "labels": {names.MANAGED_BY: "Helm"}}
    change = "application/merge-patch+json"
    site.plane.api.call("PATCH", role, {"metadata": own}, content_type=change)
    before = written(site)
    for options in (("--yes", *EVERYTHING), ()):
        with pytest.raises(InstallationError) as refused:
            site.run("uninstall", *options)
        said = str(refused.value)
        mentions(said, f"ClusterRole {names.CONTROLLER}", "Nothing has been changed")
        mentions(said, f"Remove with: helm uninstall ml --namespace {NAMESPACE}")
    assert written(site) == before
    without = {kind: dict.fromkeys(found) for kind, found in own.items()}
    site.plane.api.call("PATCH", role, {"metadata": without}, content_type=change)


def test_the_cure_of_a_missing_configuration_is_that_of_the_installation(
    installed: Site, tmp_path: Path
) -> None:
    """By what else there is of it; who may read none of that is told whom to ask."""
    site = installed
    judging = path("validatingwebhookconfigurations", "fairlead")
    own = {"annotations": {names.HELM_RELEASE: "ml"}, "labels": {names.MANAGED_BY: "Helm"}}
    change = "application/merge-patch+json"
    site.plane.api.call("PATCH", judging, {"metadata": own}, content_type=change)
    site.plane.api.delete(path("mutatingwebhookconfigurations", "fairlead"))
    pod = an_object(
        "v1",
        "Pod",
        {"name": "p", "labels": {names.RUN: "r"}},
        {"containers": [{"name": "main", "image": "example.invalid/none"}]},
    )
    (tmp_path / "pod.yaml").write_text(json.dumps(pod))
    options = ("--policies", "cluster", "-f", str(tmp_path / "pod.yaml"))
    told = site.run("explain", *options).output
    mentions(told, "no MutatingWebhookConfiguration", "helm upgrade ml CHART")
    doctor = site.findings("--check", "interception")
    mentions(doctor[0]["cure"], "helm upgrade ml CHART")
    site.plane.api.delete(judging)
    mentions(site.run("explain", *options).output, "no Mutating", "fairlead install")


def test_policies_of_files_stay_as_they_were_given(installed: Site, tmp_path: Path) -> None:
    """The next installation does not know the folder, and takes no file away."""
    site = installed
    uninstall_all_but_definitions(site)
    (tmp_path / "mine.yaml").write_text(POLICY)
    site.install("--policies-from-files", "--policies", str(tmp_path))
    config_map = path("configmaps", names.POLICIES_CONFIG_MAP, namespace=NAMESPACE)
    before = site.plane.api.get(config_map)
    done = site.run("install")
    assert done.exit_code == 0, done.output
    assert site.plane.api.get(config_map) == before
    mentions(done.stderr, "--policies-from-files", "stays as it is")
    uninstall_all_but_definitions(site)


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
    # No overlay has this one: it came with the source.
    assert after["ValidatingAdmissionPolicyBinding fairlead-stamp-mlrun-0"] == "deleted"


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
    site.kubectl("create", "secret", "generic", names.AUTHORITY_SECRET, "-n", NAMESPACE)
    mine = ("configmap", "mine", "-n", NAMESPACE)
    site.kubectl("create", *mine)
    assert site.run("uninstall", stdin="n\n").exit_code == 1
    assert site.configuration()
    foretold = site.run("uninstall", "--dry-run")
    assert foretold.exit_code == 0
    assert site.configuration()
    done = site.run("uninstall", "--yes")
    assert done.exit_code == 0
    would = foretold.stdout.replace("would delete ", "deleted ")
    assert sorted(would.splitlines()) == sorted(done.stdout.splitlines())
    runs, *kept = (f"CustomResourceDefinition {name}.fairlead.dev" for name in RESOURCES)
    namespace = f"Namespace {NAMESPACE}"
    whose = (f"left: ConfigMap {NAMESPACE}/mine", "namespace", "not Fairlead's")
    line_with(done.stdout, *whose)
    line_with(done.stdout, f"left: {runs}", "every Run")
    for each in kept:
        line_with(done.stdout, f"left: {each}", "every object of it")
    assert set(leftovers(site)) == {runs, *kept, namespace}
    assert "pool" in site.kubectl("get", "placementpolicies")
    assert "spot" in site.kubectl("get", "capacityclasses")
    site.kubectl("get", *mine)
    # No pod is refused, nor placed; and policies are anybody's to write.
    assert not is_stamped(site.create_pod("free", run="r"))
    site.kubectl("delete", "placementpolicy", "pool")
    site.kubectl("delete", *mine)
    deleted = [f"deleted {each}" for each in (runs, *kept, namespace)]
    assert sorted(site.uninstall().stdout.splitlines()) == sorted(deleted)
    assert leftovers(site) == []
    nothing = site.run("uninstall", "--yes")
    (line,) = nothing.stdout.splitlines()
    mentions(line, "nothing of Fairlead's")


@pytest.mark.last
def test_what_kubectl_applied_is_taken_over(site: Site) -> None:
    """Whoever began with kubectl can go on with install.

    Last: definitions that kubectl has applied too are sent again by every installation after it.
    """
    site.uninstall()
    shown = site.run("install", "--dry-run", "-o", "yaml", *site.at_its_address).stdout
    assert set(foretold(site).values()) == {"created"}
    site.kubectl.run("apply", "-f", "-", stdin=shown)
    # Their definitions are served a moment after they were applied.
    site.kubectl("wait", "--for=condition=Established", "crd", "--all")
    every = yaml.load_all(shown, Loader=yaml.CSafeLoader)
    items = [each for each in every if each["apiVersion"] == names.API_VERSION]
    policies = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    eventually(
        "policies can be written",
        lambda: site.kubectl.run("apply", "-f", "-", stdin=policies).returncode == 0,
    )
    assert set(results(site).values()) <= {"changed", "unchanged"}


def uninstall_all_but_definitions(site: Site) -> None:
    """Take away the policies too; to delete a definition and make it again takes seconds."""
    assert site.run("uninstall", "--yes").exit_code == 0
    for resource in RESOURCES[1:]:
        site.plane.api.delete(path(resource))


def test_policies_go_from_files_to_objects_and_back(installed: Site, tmp_path: Path) -> None:
    """Whoever installs has to say what the policies are from now on."""
    site = installed
    uninstall_all_but_definitions(site)
    (tmp_path / "mine.yaml").write_text(POLICY)
    (tmp_path / "spot.yaml").write_text(LABELLED_SPOT)
    from_files = ("--policies-from-files", "--policies", str(tmp_path))
    site.install(*from_files)
    before = site.kubectl.json("get", "deployment", names.WEBHOOK, "-n", NAMESPACE)["spec"]
    with pytest.raises(InstallationError, match=r"ConfigMap .*fairlead-policies.*--policies DIR"):
        site.install()
    after = site.kubectl.json("get", "deployment", names.WEBHOOK, "-n", NAMESPACE)["spec"]
    assert after == before
    done = site.install("--policies", str(tmp_path))
    line_with(done.stderr, "take the place of files", "ConfigMap fairlead-system/fairlead-policies")
    assert site.kubectl("get", "placementpolicy", "-o", "name").split()
    pod = site.kubectl.json("get", "deployment", names.WEBHOOK, "-n", NAMESPACE)["spec"]["template"]
    assert "configMap" not in json.dumps(pod)
    assert "--policies-from-cluster" in pod["spec"]["containers"][0]["args"]
    # And the way back, which needs to be told what the files are.
    with pytest.raises(InstallationError, match=r"2 objects.*--policies DIR"):
        site.install("--policies-from-files")
    back = results(site, *from_files)
    assert back["ValidatingWebhookConfiguration fairlead"] == "changed"
    judging = site.configuration("validatingwebhookconfiguration")
    assert [each["name"] for each in judging["webhooks"]] == [validating.WORKLOADS]
    uninstall_all_but_definitions(site)


def test_policies_stay_writable(installed: Site) -> None:
    """While no replica answers they are not written, and by one deletion they are."""
    site = installed
    # As an older version has left it.
    old = {"nodes": [{"labels": {"of": "old"}}]}
    current = site.kubectl.json("get", "capacityclass", "spot")["spec"]
    head = an_object(names.API_VERSION, names.CLASS_KIND, "spot")
    outdated = json.dumps(marked({**head, "spec": old}, SHIPPED))
    site.kubectl("replace", "-f", "-", stdin=outdated)
    site.plane.stop_component(WEBHOOK)
    mine = yaml.safe_load(POLICY)
    assert 'failed calling webhook "policies.fairlead.dev"' in site.apply(mine)
    assert not is_stamped(site.create_pod("not-of-a-run"))
    (found,) = (each for each in site.findings() if each["check"] == "judgement")
    assert found["message"].startswith("no policy can be ")
    cure = "kubectl delete validatingwebhookconfiguration fairlead"
    assert cure in found["cure"]
    site.kubectl(*cure.split()[1:])
    eventually("policies can be written", lambda: site.apply(mine) == "")
    site.plane.api.delete(path(names.PLACEMENT_POLICIES, "mine"))
    # It comes back with what answers; what could not be written before is written then.
    site.start_webhook()
    again = results(site)
    assert again["ValidatingWebhookConfiguration fairlead"] == "created"
    assert again["CapacityClass spot"] == "changed"
    assert site.kubectl.json("get", "capacityclass", "spot")["spec"] == current
    site.kubectl("replace", "-f", "-", stdin=outdated)
    site.plane.stop_component(WEBHOOK)
    # Another authority: nobody believes it until the installation says so.
    site.start_webhook()
    assert results(site)["CapacityClass spot"] == "changed"
    assert site.kubectl.json("get", "capacityclass", "spot")["spec"] == current


async def refusing(scope: Scope, receive: Receive, send: Send) -> None:
    """The /validate of an older version, which knows nothing of `interruptible`."""
    assert scope["type"] == "http"
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    request = json.loads(body)["request"]
    response: Json = {"uid": request["uid"], "allowed": b'"interruptible"' not in body}
    if not response["allowed"]:
        response["status"] = {"code": 403, "message": "spec.interruptible: there is no such field"}
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": response,
    }
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(review).encode()})


def test_what_a_webhook_of_an_older_version_refuses_is_written_after_the_rollout(
    installed: Site, tmp_path: Path
) -> None:
    """It knows fewer fields, and serves until the new one does. That of the same version stops."""
    site = installed
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "own.yaml").write_text(
        "apiVersion: fairlead.dev/v1alpha1\nkind: CapacityClass\nmetadata: {name: own}\n"
        "spec: {interruptible: true, nodes: [{labels: {of: own}}]}\n"
    )
    options = ("--policies", str(policies))
    with running(refusing) as old:
        client = {
            "url": f"https://127.0.0.1:{old.https_port}/validate",
            "caBundle": base64.b64encode(old.trust.certificate).decode(),
        }

        def point_at_it() -> None:
            judging = site.configuration("validatingwebhookconfiguration")
            at = [each["name"] for each in judging["webhooks"]].index(validating.POLICIES)
            patch = {"op": "replace", "path": f"/webhooks/{at}/clientConfig", "value": client}
            site.change("validatingwebhookconfigurations", "fairlead", patch)
            own = yaml.safe_load((policies / "own.yaml").read_text())
            eventually("it refuses", lambda: "no such field" in site.apply(own, dry_run=True))

        point_at_it()
        with pytest.raises(InstallationError, match=r"CapacityClass own: .*no such field"):
            site.install(*options)
        home = site.kubectl.within(NAMESPACE)
        home("set", "image", "deployment/fairlead-webhook", "*=example.invalid/fairlead:older")
        done = site.install("-o", "json", *options)
        created = {"object": "CapacityClass own", "result": "created"}
        assert created in json.loads(done.stdout)["objects"]
        mentions(done.stderr, "CapacityClass own is refused", "of another version")
    site.plane.api.delete(path(names.CAPACITY_CLASSES, "own"))


def test_time_that_is_over_says_what_is_missing_and_why(site: Site) -> None:
    """A webhook that does not answer: the API server's words, and the doctor's."""
    nobody = ("--webhook-url", "https://127.0.0.1:1/mutate", "--webhook-ca", str(site.authority))
    done = site.run("install", *nobody, "--timeout", "8s")
    assert done.exit_code == 3
    mentions(done.stderr, "pod of a run", "by dry run: not within 8 s", "not reach the webhook")
    assert "cure:" in done.stderr
    # What was missing is there now, and the same command goes on.
    site.install()


def test_why_pods_wait_is_shown_while_they_wait_and_whenever_it_changes(installed: Site) -> None:
    """A node, then a quota: as the time-out says it, and doctor. No pod is sent meanwhile."""
    site = installed
    before = site.configuration()["metadata"]["resourceVersion"]
    annotations = {"path": "/spec/template/metadata/annotations"}
    selector = {"path": "/spec/template/spec/nodeSelector"}
    pods = path("pods", namespace=NAMESPACE)
    quotas = path("resourcequotas", namespace=NAMESPACE)

    def change(*operations: Json) -> None:
        site.change("deployments", names.CONTROLLER, *operations, namespace=NAMESPACE)

    def exhaust() -> None:
        quota = an_object("v1", "ResourceQuota", "none", {"hard": {"pods": "0"}})
        site.plane.api.create(quotas, quota)
        # A new ReplicaSet, which gets no pod.
        change({**annotations, "op": "add", "value": {"again": "yes"}})

    change({**selector, "op": "add", "value": {"pool": "nowhere"}})
    eventually(
        "the scheduler has looked",
        lambda: '"reason": "Unschedulable"' in json.dumps(site.plane.api.get(pods)),
    )
    later = threading.Timer(12, exhaust)
    later.start()
    try:
        done = site.run("install", "--timeout", "40s")
        found = [each["message"] for each in site.findings("--check", "programs")]
    finally:
        later.join()
        site.plane.api.delete(f"{quotas}/none")
        change({**selector, "op": "remove"}, {**annotations, "op": "remove"})
    assert done.exit_code == 3
    waits, _, verdict = done.stderr.partition("controller: not within 40 s")
    mentions(waits, "waits for a node: 0/")
    refused = "no pod of fairlead-controller can be created"
    mentions(waits, refused, "exceeded quota")
    mentions(verdict.partition("Nothing is undone")[0], refused, "exceeded quota")
    line_with(found, refused, "exceeded quota")
    assert site.configuration()["metadata"]["resourceVersion"] == before
    mentions(waits, "not reached: ", "MutatingWebhookConfiguration fairlead", "the same command")


MONITORING = ("--overlay", "default", "--overlay", "monitoring")


def written(site: Site) -> Json:
    """Every object of an installation that is there, without what the controllers of Kubernetes
    write to it by themselves.
    """
    answers = {str(key): site.plane.api.call("GET", str(key.path)) for key in every_key()}
    there = {key: found for key, (status, found) in answers.items() if status == HTTPStatus.OK}
    for found in there.values():
        found.pop("status", None)
        for field in ("resourceVersion", "managedFields"):
            found["metadata"].pop(field, None)
        found["metadata"].get("annotations", {}).pop("deployment.kubernetes.io/revision", None)
    return there


def test_what_cannot_work_is_found_before_the_first_write(site: Site, tmp_path: Path) -> None:
    """Kinds that the cluster does not serve, rights that are missing, a trial that would never end,
    and configurations that the API server refuses, which are written last.
    """
    before = written(site)
    with pytest.raises(InstallationError) as refused:
        site.run("install", "--reset", "--yes", *site.at_its_address, *MONITORING)
    mentions(
        str(refused.value),
        "the cluster does not serve ServiceMonitor, PrometheusRule (monitoring.coreos.com/v1)",
        "install the Prometheus operator, or leave out the overlay monitoring",
        "Nothing has been changed",
    )
    reader = account(site.kubectl.within("default"), "default", tmp_path / "kubeconfig")
    site.kubectl(
        *("create", "clusterrolebinding", "reads-all", "--clusterrole=reads-all"),
        "--serviceaccount=default:default",
    )
    site.kubectl("create", "clusterrole", "reads-all", "--verb=get,list,watch", "--resource=*.*")
    try:
        own = ("--kubeconfig", str(reader))
        with pytest.raises(InstallationError) as forbidden:
            site.run("install", *own, "--reset", "--yes", *site.at_its_address, *MONITORING)
        shown = site.run("install", *own, "--dry-run", *site.at_its_address, *MONITORING)
    finally:
        site.kubectl("delete", "clusterrole,clusterrolebinding", "reads-all")
    mentions(
        str(forbidden.value),
        "does not serve ServiceMonitor",
        "you may not ",
        "customresourcedefinitions",
        "administrator",
    )
    assert shown.exit_code == 1
    line_with(shown.stdout, "not known: Deployment", names.WEBHOOK)
    line_with(shown.stderr, "does not serve ServiceMonitor")
    line_with(shown.stderr, "you may not ")
    elsewhere = ("--namespace", "kube-system")
    with pytest.raises(InstallationError) as unsent:
        site.run("install", "--reset", "--yes", *site.at_its_address, *MONITORING, *elsewhere)
    mentions(str(unsent.value), "ServiceMonitor", "kube-system is sent", "Nothing has been changed")
    # A wrong escape, which Go's parser refuses.
    unread = ("--webhook-url", "https://127.0.0.1:1/%zz/mutate")
    options = ("--reset", "--yes", *unread, *site.at_its_address[2:])
    with pytest.raises(InstallationError) as refused_last:
        site.run("install", *options)
    mentions(
        str(refused_last.value),
        "MutatingWebhookConfiguration fairlead would be refused",
        "ValidatingWebhookConfiguration fairlead would be refused",
        "clientConfig.url",
        "Nothing has been changed",
    )
    assert written(site) == before


def test_what_stops_half_way_says_what_was_made_and_what_is_next(site: Site) -> None:
    """A refusal that only the write meets; then the same command ends it."""
    site.uninstall()
    policy, binding = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "resources": ["services"]}]},
        "validations": [{"expression": "false", "message": "no services today"}],
    }
    api = "admissionregistration.k8s.io/v1"
    bound = {"policyName": "no-services", "validationActions": ["Deny"]}
    assert site.apply(an_object(api, policy, "no-services", spec)) == ""
    assert site.apply(an_object(api, binding, "no-services", bound)) == ""
    service = an_object("v1", "Service", "dry", {"ports": [{"port": 1}]})
    eventually("services are refused", lambda: "today" in site.apply(service, dry_run=True))
    options = ("install", "--kubeconfig", str(site.plane.kubeconfig), *site.at_its_address)
    stopped = CliRunner().invoke(fairlead, [*options, "--reset", "--yes"])
    assert isinstance(stopped.exception, InstallationError)
    mentions(str(stopped.exception), "Service fairlead-system/", "no services today")
    made, left = (line_with(stopped.stderr, word) for word in ("created: ", "not reached: "))
    mentions(made, "5 CustomResourceDefinitions", "Namespace fairlead-system")
    mentions(left, "MutatingWebhookConfiguration fairlead", "2 Deployments", "Service")
    mentions(stopped.stderr, "next: the same command", "fairlead uninstall deletes")
    site.kubectl("delete", f"{policy},{binding}", "no-services")
    eventually("services are taken", lambda: site.apply(service, dry_run=True) == "")
    site.install()


def test_ctrl_c_says_what_was_made_and_the_same_command_goes_on(site: Site) -> None:
    """While it waits for a webhook that does not answer; all that was written is answered."""
    site.uninstall()
    nobody = ("--webhook-url", "https://127.0.0.1:1/mutate", "--webhook-ca", str(site.authority))
    words = ("install", "--kubeconfig", str(site.plane.kubeconfig), "--reset", "--yes", *nobody)
    with subprocess.Popen(
        [*PROGRAM, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as installing:
        assert installing.stdout
        assert installing.stderr
        shown = ""
        while "waiting for the webhook to answer" not in shown:
            shown = installing.stderr.readline()
            assert shown
        installing.send_signal(signal.SIGINT)
        rest, printed = installing.stderr.read(), installing.stdout.read()
    assert (installing.returncode, printed) == (130, "")
    mentions(rest, "interrupted in", "stopped by Ctrl-C", "next: the same command goes on")
    mentions(line_with(rest, "created: "), "5 CustomResourceDefinitions", "2 Deployments")
    mentions(line_with(rest, "not reached: "), "ValidatingWebhookConfiguration fairlead")
    assert "not known" not in rest
    assert "Traceback" not in rest
    site.install()


def test_an_image_that_cannot_be_pulled_is_reported_at_once(installed: Site) -> None:
    """While the command waits; that the default image is in no registry, before it waits."""
    site = installed
    scheduler = {"op": "replace", "path": "/spec/template/spec/schedulerName"}

    def schedule_with(name: str) -> None:
        change = {**scheduler, "value": name}
        site.change("deployments", names.CONTROLLER, change, namespace=NAMESPACE)

    def pending() -> list[str]:
        found = site.plane.api.get(path("pods", namespace=NAMESPACE))
        assert found
        return [
            each["metadata"]["name"]
            for each in found["items"]
            if each["spec"]["schedulerName"] == "nobody"
        ]

    waiting = {"reason": "ErrImagePull", "message": "no such host"}
    container = {"name": "controller", "image": "x", "imageID": "", "ready": False}
    container |= {"restartCount": 0, "state": {"waiting": waiting}}
    status = json.dumps({"status": {"containerStatuses": [container]}})
    schedule_with("nobody")
    try:
        eventually("the new pod is there", pending)
        kubectl = site.kubectl.within(NAMESPACE)
        patched = ("--subresource=status", "--type=merge", "-p", status)
        kubectl("patch", "pod", pending()[0], *patched)
        done = site.run("install", "--timeout", "20s")
    finally:
        schedule_with("default-scheduler")
    assert done.exit_code == 3
    waits, _, verdict = done.stderr.partition("not within 20 s")
    assert verdict
    mentions(waits, "fairlead:0.1.0", "no registry", "kind load", "--image")
    mentions(waits, "cannot be pulled (ErrImagePull): no such host")


def test_entries_wait_for_their_authority_before_they_have_rules(site: Site) -> None:
    """No pod is refused because nobody has told the API server yet whom to believe."""
    key, wanted = INTERCEPTION, adapted(Choices(sources=("mlrun",)))[INTERCEPTION]

    def rules() -> list[bool]:
        return [bool(each.get("rules")) for each in site.configuration()["webhooks"]]

    def publish(*entries: str) -> None:
        bundle = base64.b64encode(site.authority.read_bytes()).decode()
        applied = an_object(
            wanted["apiVersion"],
            wanted["kind"],
            "fairlead",
            webhooks=[{"name": name, "clientConfig": {"caBundle": bundle}} for name in entries],
        )
        site.kubectl(
            "apply", "--server-side", "--field-manager=fairlead-certificates", "-f", "-",
            stdin=json.dumps(applied),
        )  # fmt: skip

    async def run(configuration: Json, seconds: float) -> str:
        async with connect(site.plane.kubeconfig) as client:
            return await intercept(client, key, configuration, Patience(seconds, period=0.05))

    ours = adapted(Choices())[INTERCEPTION]
    site.plane.api.delete(path("mutatingwebhookconfigurations", "fairlead"))
    with pytest.raises(NotInTime, match=r"pods-0\.fairlead\.dev.* no caBundle yet"):
        asyncio.run(run(ours, 0.2))
    assert rules() == [False, False]
    publish("pods-0.fairlead.dev", "namespaces.fairlead.dev")
    assert asyncio.run(run(ours, 30)) == "changed"
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
    asyncio.run(run(ours, 30))
    assert rules() == [True, True]
    assert all(each["clientConfig"]["caBundle"] for each in site.configuration()["webhooks"])
    site.plane.api.delete(path("mutatingwebhookconfigurations", "fairlead"))
