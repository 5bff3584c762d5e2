"""Install, upgrade, roll back and uninstall with the real helm, on a real API server.

By Helm 4, which applies on the server's side, and by Helm 3, which sends merge patches.
"""

from __future__ import annotations

import base64
import http
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.eventually import eventually
from tests.fast_yaml import load_yaml
from tests.go_programs import HELMS, obtain_program
from tests.helm.conftest import Template
from tests.manifests.chart import CHART, with_components
from tests.manifests.generated import ROOT
from tests.manifests.kustomize import Json, of_kind, overlay
from tests.objects import an_object
from tests.wording import mentions
from webhook import names
from webhook.applied_by import applied_by
from webhook.cli import fairlead
from webhook.errors import InstallationError
from webhook.installation.manifests import every_key
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.simulated_nodes import SHIPPED_NODES, read_pools

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
CONFIGURATION = f"{REGISTRATION}/mutatingwebhookconfigurations/fairlead"
VALIDATING = f"{REGISTRATION}/validatingwebhookconfigurations/fairlead"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{names.NAMESPACE}/deployments"
POLICIES = f"/apis/{names.API_VERSION}/{names.POLICY_RESOURCES[names.POLICY_KIND]}"
SECRETS = f"/api/v1/namespaces/{names.NAMESPACE}/secrets"
POLICY: Json = an_object(
    names.API_VERSION, names.POLICY_KIND, "mine", {"defaults": {"nodeSelector": {"pool": "mine"}}}
)
RUN: Json = {
    "apiVersion": names.API_VERSION,
    "kind": "Run",
    "metadata": {"name": "kept"},
    "spec": {
        "template": {"spec": {"containers": [{"name": "main", "image": "example.invalid/none"}]}},
        "replicas": {"worker": {}},
    },
}
BUNDLE = base64.b64encode(b"the keeper's").decode()
MAX_SECRET = 1 << 20
OK = http.HTTPStatus.OK
PATHS = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}


@dataclass(frozen=True)
class Release:
    """The release `fairlead` in a cluster of the module's own."""

    plane: ControlPlane
    program: Path

    @property
    def on_the_server(self) -> bool:
        """Whether this helm applies on the server's side: Helm 4 does."""
        return self.helm("version", "--template", "{{ .Version }}").startswith("v4")

    def helm(self, *arguments: str | Path, ok: bool = True) -> str:
        """Run a command of helm in the namespace; its output, or that of its failure."""
        done = subprocess.run(
            [self.program, *arguments, "--namespace", names.NAMESPACE],
            env={**os.environ, "KUBECONFIG": str(self.plane.kubeconfig)},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (done.returncode == 0) == ok, done.stdout + done.stderr
        return done.stdout + done.stderr

    def install(self, *options: str) -> str:
        """Install into a namespace that helm creates."""
        return self.helm("install", "fairlead", CHART, "--create-namespace", *options)

    def get(self, path: str) -> Json:
        """An object that exists."""
        found: Json | None = self.plane.api.get(path)
        assert found is not None, path
        return found

    def replicas(self) -> int:
        """Those of the webhook's Deployment."""
        return int(self.get(f"{DEPLOYMENTS}/fairlead-webhook")["spec"]["replicas"])

    def entries(self) -> list[str]:
        return [each["name"] for each in self.get(CONFIGURATION)["webhooks"]]

    def bundles(self) -> set[str]:
        """The caBundles of both configurations."""
        return {
            each["clientConfig"].get("caBundle", "")
            for path in (CONFIGURATION, VALIDATING)
            for each in self.get(path)["webhooks"]
        }

    def set_level(self, level: str | None) -> None:
        """Set the namespace's Pod Security level; None: as helm leaves it."""
        path = f"/api/v1/namespaces/{names.NAMESPACE}"
        labels = {"pod-security.kubernetes.io/enforce": level}
        status, answer = self.plane.api.call(
            "PATCH",
            path,
            {"metadata": {"labels": labels}},
            content_type="application/merge-patch+json",
        )
        assert status == OK, answer

    def admits_pods(self, level: str) -> list[str]:
        """Why a pod of each program is refused under this level; empty if it is not."""
        self.set_level(level)
        pods = f"/api/v1/namespaces/{names.NAMESPACE}/pods?dryRun=All"
        found = []
        for name in (names.WEBHOOK, names.CONTROLLER):
            spec = self.get(f"{DEPLOYMENTS}/{name}")["spec"]["template"]["spec"]
            pod = an_object("v1", "Pod", {"name": "tried"}, spec)
            status, answer = self.plane.api.call("POST", pods, pod)
            found.append("" if status == http.HTTPStatus.CREATED else answer["message"])
        return found

    def keep_bundles(self) -> None:
        """Write the caBundle as the controller does: server-side apply of that field alone."""
        for path in (CONFIGURATION, VALIDATING):
            live = self.get(path)
            wanted = {
                "apiVersion": live["apiVersion"],
                "kind": live["kind"],
                "metadata": {"name": live["metadata"]["name"]},
                "webhooks": [
                    {"name": each["name"], "clientConfig": {"caBundle": BUNDLE}}
                    for each in live["webhooks"]
                ],
            }
            query = "fieldManager=fairlead-certificates&force=true"
            status, answer = self.plane.api.call(
                "PATCH", f"{path}?{query}", wanted, content_type="application/apply-patch+yaml"
            )
            assert status == OK, answer


@pytest.fixture(scope="module")
def plane(
    binaries: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A cluster without Fairlead."""
    folder = tmp_path_factory.mktemp("helm") / "control-plane"
    with ControlPlane(folder, binaries, Settings(pools=read_pools(SHIPPED_NODES))) as plane:
        yield plane


@pytest.fixture
def release(plane: ControlPlane, helm: Path) -> Iterator[Release]:
    """Without Fairlead before the test; what a test leaves is removed."""
    found = Release(plane, helm)
    yield found
    found.helm("uninstall", "fairlead", "--ignore-not-found", "--wait")
    for name in definitions(found):
        # The API server deletes a definition once it has listed its objects. If that is the first
        # read of the kind, it fails while storage begins, and is tried again after ever longer
        # pauses.
        read_kind(plane, name.partition(".")[0])
        plane.api.delete(f"{CRDS}/{name}")

    def conditions() -> str:
        there = [each for each in found.get(CRDS)["items"] if each["spec"]["group"] == names.GROUP]
        return json.dumps([[each["metadata"], each["status"]["conditions"]] for each in there])

    eventually("the definitions are gone", lambda: not definitions(found), explain=conditions)


def read_kind(plane: ControlPlane, resource: str) -> None:
    """List the objects of a kind, as soon as the API server can."""
    path = f"/apis/{names.API_VERSION}/{resource}"
    eventually(f"{resource} are listed", lambda: plane.api.call("GET", path)[0] == OK)


def definitions(release: Release) -> set[str]:
    """Fairlead's definitions that are there."""
    found = release.get(CRDS)["items"]
    return {each["metadata"]["name"] for each in found if each["spec"]["group"] == names.GROUP}


ALL = {each["metadata"]["name"] for each in of_kind(overlay("default"), "CustomResourceDefinition")}


def test_from_install_to_uninstall(release: Release) -> None:
    """Upgrade and rollback change what the values say and leave the caBundle; policies stay."""
    release.install()
    assert definitions(release) == ALL
    assert release.entries() == ["pods-0.fairlead.dev", "namespaces.fairlead.dev"]
    release.keep_bundles()

    release.helm("upgrade", "fairlead", CHART, "--set", "webhook.replicas=4,sources={mlrun}")
    assert release.replicas() == 4
    assert release.entries()[2:] == ["mlrun-0.fairlead.dev"]
    # The new entry has none before the controller writes it.
    assert release.bundles() == {BUNDLE, ""}

    release.helm("rollback", "fairlead", "1")
    assert release.replicas() == 3
    assert release.entries() == ["pods-0.fairlead.dev", "namespaces.fairlead.dev"]
    assert release.bundles() == {BUNDLE}

    largest = max(
        len(json.dumps(each["data"]))
        for each in release.get(SECRETS)["items"]
        if each["type"].startswith("helm.sh/release")
    )
    assert largest < MAX_SECRET / 2

    release.helm("uninstall", "fairlead")
    assert release.plane.api.get(CONFIGURATION) is None
    assert release.plane.api.get(VALIDATING) is None
    assert release.plane.api.get(f"{DEPLOYMENTS}/fairlead-webhook") is None
    assert definitions(release) == ALL


def test_policies_and_runs_outlive_the_release(release: Release) -> None:
    """Uninstalled and installed again, with the objects that were there."""
    release.install()
    # Nothing serves the webhook here, and without its configuration nothing judges policies.
    release.plane.api.delete(VALIDATING)
    release.plane.api.create(POLICIES, POLICY)
    runs = f"/apis/{names.API_VERSION}/namespaces/default/{names.RUNS}"
    release.plane.api.create(runs, RUN)
    before = release.get(f"{POLICIES}/mine"), release.get(f"{runs}/kept")
    release.helm("upgrade", "fairlead", CHART, "--set", "nodes=true")
    release.helm("rollback", "fairlead")
    release.helm("uninstall", "fairlead")
    assert (release.get(f"{POLICIES}/mine"), release.get(f"{runs}/kept")) == before
    release.install()
    assert (release.get(f"{POLICIES}/mine"), release.get(f"{runs}/kept")) == before


def test_an_upgrade_upgrades_the_definitions(release: Release, tmp_path: Path) -> None:
    """From a chart whose definition lacks a field to this one."""
    older = copied_chart(tmp_path)
    text = (older / "files" / "crds.yaml").read_text()
    assert "ttlSecondsAfterFinished:" in text
    (older / "files" / "crds.yaml").write_text(
        text.replace("ttlSecondsAfterFinished:", "formerTime:")
    )
    release.helm("install", "fairlead", older, "--create-namespace")
    assert "ttlSecondsAfterFinished" not in fields_of_a_run(release)
    release.helm("upgrade", "fairlead", CHART)
    assert "ttlSecondsAfterFinished" in fields_of_a_run(release)
    assert "formerTime" not in fields_of_a_run(release)


# A field of today by definition, and the object that has it.
STORED: Mapping[str, tuple[str, str, Json]] = {
    "placementpolicies": (
        "rollout",
        POLICIES,
        an_object(
            names.API_VERSION,
            names.POLICY_KIND,
            "narrow",
            {
                "rollout": {"namespaces": ["pilot"]},
                "overrides": {"nodeSelector": {"pool": "mine"}},
            },
        ),
    ),
    "capacityclasses": (
        "lostAfter",
        f"/apis/{names.API_VERSION}/{names.POLICY_RESOURCES[names.CLASS_KIND]}",
        an_object(
            names.API_VERSION,
            names.CLASS_KIND,
            "spot",
            {"nodes": [{"labels": {"pool": "spot"}}], "lostAfter": "60s"},
        ),
    ),
    "placementexceptions": (
        "reason",
        f"/apis/{names.API_VERSION}/{names.POLICY_RESOURCES[names.EXCEPTION_KIND]}",
        an_object(
            names.API_VERSION,
            names.EXCEPTION_KIND,
            "maintenance",
            {
                "policies": ["narrow"],
                "match": {"namespaces": ["pilot"]},
                "until": "2030-01-01T00:00:00Z",
                "reason": "maintenance",
            },
        ),
    ),
    "runsources": (
        "identity",
        f"/apis/{names.API_VERSION}/{names.POLICY_RESOURCES[names.SOURCE_KIND]}",
        an_object(
            names.API_VERSION,
            names.SOURCE_KIND,
            "acme",
            {
                "system": "Acme",
                "identity": {
                    "precedence": 650,
                    "marks": [{"label": "acme.example.com/job"}],
                    "run": [{"label": "acme.example.com/job"}],
                },
            },
        ),
    ),
    "runs": (
        "ttlSecondsAfterFinished",
        f"/apis/{names.API_VERSION}/namespaces/default/{names.RUNS}",
        {**RUN, "spec": {**RUN["spec"], "ttlSecondsAfterFinished": 60}},
    ),
}


def test_a_rollback_keeps_what_is_stored_today(release: Release, tmp_path: Path) -> None:
    """The chart of before lacks a field of each definition that today's objects have.

    Policies, classes, exceptions and sources keep it, and the Run's is back after the upgrade.
    """
    older = copied_chart(tmp_path)
    definitions_file = older / "files" / "crds.yaml"
    shortened = load_yaml(definitions_file.read_text())
    for definition in shortened:
        field, _, _ = STORED[definition["spec"]["names"]["plural"]]
        for version in definition["spec"]["versions"]:
            spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
            del spec["properties"][field]
            spec["required"] = [each for each in spec.get("required", ()) if each != field]
            rules = spec.pop("x-kubernetes-validations", [])
            spec["x-kubernetes-validations"] = [each for each in rules if field not in each["rule"]]
    definitions_file.write_text(json.dumps(shortened))
    release.helm("install", "fairlead", older, "--create-namespace")
    release.helm("upgrade", "fairlead", CHART)
    release.keep_bundles()
    # Nothing serves the webhook here, and without its configuration nothing judges policies.
    release.plane.api.delete(VALIDATING)
    for resource, (_, path, document) in STORED.items():
        read_kind(release.plane, resource)
        release.plane.api.create(path, document)

    def stored() -> dict[str, Json]:
        return {
            resource: release.get(f"{path}/{document['metadata']['name']}")
            for resource, (_, path, document) in STORED.items()
        }

    def has_fields() -> dict[str, bool]:
        return {
            resource: STORED[resource][0] in each["spec"] for resource, each in stored().items()
        }

    before = stored()
    release.helm("rollback", "fairlead", "1")
    kept = {**dict.fromkeys(STORED, True), "runs": False}
    eventually("the older definitions serve", lambda: has_fields() == kept, explain=has_fields)
    after = stored()
    del before["runs"], after["runs"]
    assert after == before
    release.helm("upgrade", "fairlead", CHART)
    everything = dict.fromkeys(STORED, True)
    eventually("the definitions serve", lambda: has_fields() == everything, explain=has_fields)
    assert BUNDLE in release.bundles()


def copied_chart(folder: Path) -> Path:
    """A chart that a test may change."""
    copy = folder / "fairlead"
    subprocess.run(["cp", "-r", CHART, copy], check=True)
    return copy


def fields_of_a_run(release: Release) -> Mapping[str, Any]:
    """The properties of `spec` in the definition of Runs."""
    (version,) = release.get(f"{CRDS}/runs.{names.GROUP}")["spec"]["versions"]
    found: Mapping[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return dict(found["properties"])


def test_a_source_is_removed_without_server_side_apply(release: Release) -> None:
    """Its entry has a caBundle by then, which is another manager's; the guide has the option."""
    release.install("--set", "sources={mlrun}")
    release.keep_bundles()
    removal = ("upgrade", "fairlead", CHART, "--set-json", "sources=[]")
    if release.on_the_server:
        mentions(release.helm(*removal, ok=False), "webhooks[2]")
        release.helm(*removal, "--server-side=false")
    else:
        release.helm(*removal)
    assert release.entries() == ["pods-0.fairlead.dev", "namespaces.fairlead.dev"]
    assert release.bundles() == {BUNDLE}


@pytest.mark.parametrize("manager", ["kubectl", names.INSTALL_MANAGER])
def test_an_installation_is_taken_over_on_request(
    release: Release, kubectl_path: Path, manager: str
) -> None:
    """Without --take-ownership helm refuses, and changes nothing.

    Later commands need no option, although the manager of before keeps its fields. A source that
    the values lack stays until it has been among them.
    """
    apply_before(release, kubectl_path, manager)
    refused = release.helm("install", "fairlead", CHART, ok=False)
    mentions(refused, "invalid ownership metadata")
    options = ["--server-side=false"] if release.on_the_server else []
    release.helm("install", "fairlead", CHART, "--take-ownership", *options)
    release.keep_bundles()
    assert (release.replicas(), release.entries()[2:]) == (3, ["mlrun-0.fairlead.dev"])
    release.helm("upgrade", "fairlead", CHART, "--set", "webhook.replicas=2,sources={mlrun}")
    assert (release.replicas(), release.entries()[2:]) == (2, ["mlrun-0.fairlead.dev"])
    release.helm("rollback", "fairlead", "1")
    assert (release.replicas(), release.entries()[2:]) == (3, [])
    release.helm("upgrade", "fairlead", CHART, "--set", "webhook.replicas=4,webhook.port=9443")
    assert release.replicas() == 4
    managers = {each["manager"] for each in managed_fields(release)}
    assert {manager, "helm"} <= managers


def test_the_cure_of_doctor_writes_over_what_others_hold(
    release: Release, kubectl_path: Path
) -> None:
    """On the server's side helm refuses fields of another manager; the cure chooses its own."""
    apply_before(release, kubectl_path, names.INSTALL_MANAGER)
    options = ["--force-conflicts"] if release.on_the_server else []
    release.helm("install", "fairlead", CHART, "--take-ownership", *options)
    value = ("--set", "webhook.replicas=2")
    if release.on_the_server:
        refused = release.helm("upgrade", "fairlead", CHART, *value, ok=False)
        mentions(refused, names.INSTALL_MANAGER, ".spec.replicas")
    status, answer = release.plane.api.call(
        "PATCH",
        CONFIGURATION,
        [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}],
        content_type="application/json-patch+json",
    )
    assert status == OK, answer
    cure = applied_by([release.get(CONFIGURATION)]).command(values=" ".join(value))
    assert ("--server-side=false" in cure) == release.on_the_server
    program, *words = shlex.split(cure)
    assert program == "helm"
    release.helm(*(CHART if each == "CHART" else each for each in words))
    assert release.get(CONFIGURATION)["webhooks"][0]["failurePolicy"] == "Fail"
    assert release.replicas() == 2
    # From here on no option is needed.
    release.helm("upgrade", "fairlead", CHART, "--set", "webhook.replicas=4")
    assert release.replicas() == 4


def test_the_api_server_is_asked_before_an_installation(
    release: Release, kubectl_path: Path, tmp_path: Path
) -> None:
    """The command of the guide, about a request that is larger than its limit: schemas cannot."""
    page = (ROOT / "docs" / "guides" / "helm.md").read_text()
    (command,) = re.findall(r"^```sh\n(helm template .*?)^```$", page, re.MULTILINE | re.DOTALL)
    for name, program in (("helm", release.program), ("kubectl", kubectl_path)):
        (tmp_path / name).symlink_to(program)
    namespace = an_object("v1", "Namespace", names.NAMESPACE, {})
    release.plane.api.call("POST", "/api/v1/namespaces", namespace)

    def asked(values: Json) -> subprocess.CompletedProcess[str]:
        (tmp_path / "mine.yaml").write_text(json.dumps(values))
        command_here = command.replace("mine.yaml", str(tmp_path / "mine.yaml"))
        paths = {
            "KUBECONFIG": str(release.plane.kubeconfig),
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
        }
        return subprocess.run(
            ["bash", "-c", command_here],
            cwd=ROOT,
            env={**os.environ, **paths},
            capture_output=True,
            text=True,
            timeout=120,
        )

    done = asked({"webhook": {"resources": {"requests": {"memory": "1Gi"}}}})
    assert done.returncode != 0
    mentions(done.stderr, "fairlead-webhook", "memory", "1Gi", "less than or equal to memory limit")
    done = asked({"webhook": {"resources": {"requests": {"memory": "256Mi"}}}})
    assert done.returncode == 0, done.stderr
    assert release.plane.api.get(CONFIGURATION) is None


def apply_before(release: Release, kubectl_path: Path, manager: str) -> None:
    """Apply manifests with a source on the server's side, as kubectl and `fairlead install` do."""
    objects = with_components(kubectl_path, "default", "source-mlrun")
    kubectl = Kubectl(kubectl_path, release.plane.kubeconfig)
    options = ["--server-side", f"--field-manager={manager}", "-f", "-"]
    kubectl(
        "apply", *options, stdin=json.dumps({"kind": "List", "apiVersion": "v1", "items": objects})
    )


def managed_fields(release: Release) -> list[Json]:
    """Who manages the fields of the webhook's Deployment."""
    found: list[Json] = release.get(f"{DEPLOYMENTS}/fairlead-webhook")["metadata"]["managedFields"]
    return found


def test_a_release_of_helm_3_goes_on_with_helm_4(plane: ControlPlane, release: Release) -> None:
    """It stays on the client's side, so that no option is needed to remove a source.

    A rollback by Helm 4 changes sides: after it the entry would stay without a word.
    """
    if release.on_the_server:
        older = Release(plane, obtain_program(HELMS["helm-3"]))
        older.install("--set", "sources={mlrun}")
        release.keep_bundles()
        release.helm("upgrade", "fairlead", CHART, "--set-json", "sources=[]")
    else:
        newer = Release(plane, obtain_program(HELMS["helm-4"]))
        release.install("--set", "sources={mlrun}")
        newer.helm("upgrade", "fairlead", CHART, "--set", "webhook.replicas=4,sources={mlrun}")
        release.keep_bundles()
        newer.helm("rollback", "fairlead", "1")
        assert release.replicas() == 3
        removal = ("--set-json", "sources=[]", "--server-side=false")
        newer.helm("upgrade", "fairlead", CHART, *removal)
    assert release.entries() == ["pods-0.fairlead.dev", "namespaces.fairlead.dev"]
    assert release.bundles() == {BUNDLE}


def test_fairlead_install_leaves_a_release_alone(release: Release) -> None:
    """It names helm's command, as the doctor does; what a release of before has left, it takes."""
    chosen = "sources={mlrun},failurePolicy=Ignore,guards.stamp=warn,policyReports=true"
    release.install("--set", chosen, "--set", "image.repository=example.invalid/fairlead")
    at = ("--kubeconfig", str(release.plane.kubeconfig))
    again = "helm upgrade fairlead CHART --namespace fairlead-system --reset-then-reuse-values"
    again += " --server-side=false" if release.on_the_server else ""
    before = {key: release.plane.api.get(key.path) for key in every_key()}
    for options in ((), ("--reset", "--yes"), ("--source", "mlrun", "--yes"), ("--dry-run",)):
        refused = CliRunner().invoke(fairlead, ["install", *at, *options])
        assert isinstance(refused.exception, InstallationError)
        mentions(str(refused.exception), "release fairlead of Helm", again, "Nothing has been")
    refused = CliRunner().invoke(fairlead, ["uninstall", *at, "--yes"])
    assert isinstance(refused.exception, InstallationError)
    away = "helm uninstall fairlead --namespace fairlead-system"
    mentions(str(refused.exception), "release fairlead of Helm", away, "Nothing has been")
    assert before == {key: release.plane.api.get(key.path) for key in every_key()}

    release.plane.api.delete(CONFIGURATION)
    told = CliRunner().invoke(fairlead, ["doctor", *at, "-o", "json"])
    findings = json.loads(told.stdout)["findings"]
    cures = [each["cure"] for each in findings if each["check"] == "interception"]
    assert cures == [again]
    assert not [each for each in findings if "fairlead install" in (each["cure"] or "")]

    release.helm("upgrade", "fairlead", CHART, "--reset-then-reuse-values")
    assert release.entries()[2:] == ["mlrun-0.fairlead.dev"]
    release.helm("uninstall", "fairlead", "--wait")
    assert definitions(release) == ALL
    shown = CliRunner().invoke(fairlead, ["install", *at, "--dry-run"])
    assert shown.exit_code == 0, shown.output


def test_doctor_takes_a_chosen_narrowing_as_meant(release: Release) -> None:
    """Until its record is gone."""
    release.install(
        *("--set", "guards.stamp=deny,guards.nodeNames=true,guards.tolerations=true"),
        *("--set", "webhookConfigurations.namespaceSelector.matchLabels.team=ml"),
    )

    def narrowings() -> list[str]:
        at = ("--kubeconfig", str(release.plane.kubeconfig), "--check", "interception")
        told = CliRunner().invoke(fairlead, ["doctor", *at, "-o", "json"])
        found = [each["message"] for each in json.loads(told.stdout)["findings"]]
        return [what for what in found if "in addition to what is installed" in what]

    (entry, *_) = release.get(CONFIGURATION)["webhooks"]
    assert entry["namespaceSelector"]["matchLabels"] == {"team": "ml"}
    assert narrowings() == []
    path = f"{DEPLOYMENTS}/{names.CONTROLLER}"
    status, _ = release.plane.api.call(
        "PATCH",
        path,
        {"metadata": {"annotations": {names.INTERCEPTED_NAMESPACE_SELECTOR: None}}},
        content_type="application/merge-patch+json",
    )
    assert status == OK
    assert len(narrowings()) == 2


def test_gitops_tools_find_no_difference(release: Release, template: Template) -> None:
    """A server-side dry run of the chart's objects changes none, caBundle and all.

    Flux, and Argo CD with server-side diff, look for drift in this way. Against the chart's own
    text the live configurations differ in caBundle alone, which docs/guides/argo-cd.md ignores.
    """
    release.install()
    release.keep_bundles()
    for each in template({}):
        if each["kind"] not in PATHS:
            continue
        path = f"{REGISTRATION}/{PATHS[each['kind']]}/fairlead"
        live = release.get(path)
        # The manager of helm's own installation.
        query = "fieldManager=helm&force=true&dryRun=All"
        status, answer = release.plane.api.call(
            "PATCH", f"{path}?{query}", each, content_type="application/apply-patch+yaml"
        )
        assert status == OK, answer
        assert answer["webhooks"] == live["webhooks"]
        assert differing(each["webhooks"], live["webhooks"]) == {
            ".webhooks[].clientConfig.caBundle"
        }
    page = (ROOT / "docs" / "guides" / "argo-cd.md").read_text()
    mentions(page, *PATHS, ".webhooks[]?.clientConfig.caBundle")


def differing(wanted: Any, live: Any, path: str = ".webhooks") -> set[str]:
    """The paths at which the live object has another value, or one that is not wanted."""
    if isinstance(wanted, list) and isinstance(live, list) and len(wanted) == len(live):
        pairs = zip(wanted, live, strict=True)
        mark = "[]" if wanted and isinstance(wanted[0], dict) else ""
        return {found for one, other in pairs for found in differing(one, other, path + mark)}
    if isinstance(wanted, dict) and isinstance(live, dict):
        return {
            found
            for key in {*wanted, *live}
            for found in differing(wanted.get(key), live.get(key), f"{path}.{key}")
        }
    return set() if wanted == live else {path}


def test_openshift_on_the_network_of_the_nodes(release: Release) -> None:
    """The profile and hostNetwork: scheduled, on ports of their own, and admitted by the level."""
    found = release.install(
        *("--values", str(CHART / "openshift.yaml")),
        *("--set", "webhook.hostNetwork=true,controller.hostNetwork=true"),
        *("--set", "webhook.port=9443,webhook.healthPort=9081,monitoring=false"),
    )
    label = re.search(r"pod-security\.kubernetes\.io/enforce=(\w+)", found)
    assert label
    assert label[1] == "privileged"

    def refused(level: str) -> str:
        return " ".join(release.admits_pods(level))

    # The API server decides by a cache of namespaces.
    eventually("it is refused", lambda: "hostNetwork" in refused("restricted"))
    eventually("it is admitted", lambda: not refused(label[1]).strip())
    release.set_level(None)

    def ready() -> list[int]:
        programs = (names.WEBHOOK, names.CONTROLLER)
        found = [release.get(f"{DEPLOYMENTS}/{name}")["status"] for name in programs]
        return [each.get("readyReplicas", 0) for each in found]

    eventually("the replicas are ready", lambda: ready() == [3, 2], explain=ready)
    listed = release.get(f"/api/v1/namespaces/{names.NAMESPACE}/pods")["items"]
    webhooks = [each for each in listed if each["metadata"]["name"].startswith(names.WEBHOOK)]
    # The scheduler puts no two pods with one port of the host on one node.
    assert len({each["spec"]["nodeName"] for each in webhooks}) == 3
    for each in listed:
        assert each["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
        assert not {"runAsUser", "runAsGroup"} & {*each["spec"]["securityContext"]}
