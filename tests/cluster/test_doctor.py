"""`fairlead doctor`, on a real API server: what it finds, it finds for real."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from certs.authority import new_authority
from certs.issue import Names, issue_server
from certs.pair import Pair
from tests.cluster.sites import NAMESPACE, WEBHOOK, Site, build
from tests.eventually import eventually
from tests.wording import line_with, mentions
from webhook import names
from webhook.interception import webhooks
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.controller import start_controller
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.nodes import SHIPPED_NODES, read_pools

Json = dict[str, Any]
CONFIGURATION = ("mutatingwebhookconfiguration", "fairlead")
SETTING = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: setting}
spec: {overrides: {capacity: [{class: none, mode: Constrain}]}}
"""
SERVER_NAME = "fairlead-webhook.fairlead-system.svc"
LEASE = ("--lease-namespace", NAMESPACE)


@pytest.fixture(scope="module")
def site(
    binaries: Mapping[str, Path], kubectl_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """A cluster with Fairlead, a webhook that answers and a controller that leads."""
    folder = tmp_path_factory.mktemp("doctor")
    settings = Settings(pools=read_pools(SHIPPED_NODES))
    with ControlPlane(folder / "cluster", binaries, settings) as plane:
        site = build(plane, Kubectl(kubectl_path, plane.kubeconfig), folder)
        found = site.run("doctor")
        assert found.exit_code == 1
        line_with(found.stdout, "installation:", "not in this cluster")
        site.install()
        start_controller(plane, options=LEASE)
        yield site


@pytest.fixture
def well(site: Site) -> Site:
    """The same, with nothing wrong when the test begins."""
    if problems(site):
        site.install()
        eventually("nothing is wrong", lambda: problems(site) == [])
    return site


def problems(site: Site, *options: str) -> list[str]:
    """What is said of errors and warnings: `error programs: ...`."""
    return [
        f"{each['severity']} {each['check']}: {each['what']}"
        for each in site.findings(*options)
        if each["severity"] != "note"
    ]


def patch(site: Site, *operations: Json) -> None:
    """Change the webhook configuration."""
    site.kubectl("patch", *CONFIGURATION, "--type=json", "-p", json.dumps(operations))


def test_a_good_installation_is_well(well: Site) -> None:
    """Every check says so, but for what kwok's pods and a webhook by URL cannot be asked."""
    found = well.run("doctor")
    assert found.exit_code == 0
    mentions(found.stdout.splitlines()[-1], "Nothing", "is wrong")
    document = json.loads(well.run("doctor", "-o", "json").stdout)
    assert (document["errors"], document["warnings"]) == (0, 0)
    assert {"end to end", "guards", "programs", "leader", "agents"} <= set(document["ok"])
    assert document["unknown"] == ["watches", "policies"]
    nowhere = well.run("doctor", "-n", "nowhere")
    assert nowhere.exit_code == 2
    mentions(nowhere.stderr, "no namespace nowhere")


def test_pods_that_a_fail_open_let_through_are_found(well: Site) -> None:
    """By namespace, with their number and some names; not those of others, nor those that ended."""
    site = well
    site.install("--overlay", "fail-open-guarded")
    site.plane.create_namespace("team", {names.PLACE: names.PLACE_ALL})
    site.create_pod("well-placed", run="r")
    site.plane.stop_component(WEBHOOK)
    for number in range(5):
        site.create_pod(f"slipped-{number}", run="r")
    site.create_pod("of-the-team", "team")
    site.create_pod("none-of-ours")
    found = problems(site)
    shown = "slipped-0, slipped-1, slipped-2 and 2 more"
    line_with(found, "warning unplaced pods: in default", "5 pods", "no stamp", shown)
    line_with(found, "warning unplaced pods: in team", "1 pod ", "no stamp", "of-the-team")
    line_with(found, "error end to end:", "in default", "without a stamp")
    assert not any("well-placed" in each for each in found)
    only_there = problems(site, "--namespace", "team")
    assert [each for each in only_there if "in default" in each and "unplaced" in each] == []
    notes = [each["what"] for each in site.findings() if each["severity"] == "note"]
    assert any("is placed in team" in each for each in notes)
    assert sum("failurePolicy: Ignore" in each for each in notes) == 2
    site.start_webhook()
    for namespace in ("default", "team"):
        site.kubectl.within(namespace)("delete", "pod", "--all", "--force")
    site.kubectl("label", "namespace", "team", f"{names.PLACE}-")


def test_what_stands_in_the_webhook_configuration_is_judged(well: Site) -> None:
    """Nobody has to know by heart what is safe."""
    site = well
    entry = "/webhooks/0"
    first = site.configuration()["webhooks"][0]
    patch(
        site,
        {"op": "replace", "path": f"{entry}/timeoutSeconds", "value": 30},
        {"op": "replace", "path": f"{entry}/reinvocationPolicy", "value": "Never"},
        {"op": "replace", "path": f"{entry}/namespaceSelector", "value": {}},
        {"op": "add", "path": f"{entry}/rules/0/operations/-", "value": "UPDATE"},
        {"op": "add", "path": "/webhooks/-", "value": {**first, "name": "twice.fairlead.dev"}},
    )
    found = problems(site)
    for wanted in (
        ("warning interception: pods-0.fairlead.dev ", "timeoutSeconds 30"),
        ("warning interception: pods-0.fairlead.dev ", "reinvocationPolicy Never"),
        ("warning interception: pods-0.fairlead.dev ", "more than the creation"),
        ("error selectors: pods-0.fairlead.dev ", "pods of kube-system"),
        ("warning selectors:", "both pods-0.fairlead.dev and twice.fairlead.dev"),
    ):
        line_with(found, *wanted)
    # Each has the same cure.
    site.install()
    assert problems(site) == []
    patch(site, {"op": "replace", "path": f"{entry}/failurePolicy", "value": "Ignore"})
    line_with(problems(site), "no guard tells")
    patch(site, {"op": "replace", "path": f"{entry}/rules", "value": []})
    line_with(problems(site), "error interception: pods-0.fairlead.dev ", "no rules", "until when")
    site.run("disable", "--for", "1h")
    line_with(problems(site), "disabled until")
    past = f"{names.DISABLED_UNTIL}=2026-01-01T00:00:00+00:00"
    site.kubectl("annotate", *CONFIGURATION, "--overwrite", past)
    line_with(problems(site), "to be enabled again at")
    site.kubectl("delete", *CONFIGURATION)
    line_with(problems(site), "no webhook configuration")


def test_what_an_admin_took_away_or_narrowed_is_told(well: Site) -> None:
    """Each of these lets something by, and nothing else says so."""
    site = well
    condition = {"name": "not-x", "expression": "object.metadata.name != 'x'"}
    entry = "/webhooks/1"
    patch(site, {"op": "add", "path": f"{entry}/matchConditions", "value": [condition]})
    line_with(problems(site), "warning interception:", "matchConditions", "not-x")
    patch(site, {"op": "remove", "path": f"{entry}/matchConditions"})
    assert problems(site) == []
    patch(site, {"op": "remove", "path": entry})
    line_with(problems(site), "interception:", "no entry namespaces.fairlead.dev")
    guard = "validatingadmissionpolicybinding"
    site.kubectl("delete", guard, names.RUN_AUTHORS_GUARD)
    line_with(problems(site), "error guards:", f"Binding {names.RUN_AUTHORS_GUARD}")
    site.install()
    assert problems(site) == []


def test_programs_that_do_not_run_are_told_with_the_reason(well: Site) -> None:
    """And versions that differ."""
    site = well
    deployment = ("deployment", "fairlead-webhook", "-n", NAMESPACE)
    site.kubectl("set", "image", *deployment, "webhook=example.invalid/fairlead:9.9.9")
    found = problems(site)
    line_with(found, "different versions")
    mentions("\n".join(found), "fairlead-webhook is of version 9.9.9")
    nowhere = {"spec": {"template": {"spec": {"nodeSelector": {"pool": "nowhere"}}}}}
    site.kubectl("patch", *deployment, "-p", json.dumps(nowhere))
    eventually(
        "the scheduler has looked",
        lambda: any("waits for a node: 0/" in each for each in problems(site)),
    )
    site.kubectl("delete", *deployment)
    site.kubectl("delete", "deployment", "fairlead-controller", "-n", NAMESPACE)
    line_with(problems(site), "error programs:", f"no Deployment {NAMESPACE}/fairlead-controller")


def test_a_definition_of_another_version_is_told(well: Site) -> None:
    """Its schema is not ours."""
    schema = "/spec/versions/0/schema/openAPIV3Schema/description"
    change = [{"op": "replace", "path": schema, "value": "of old"}]
    site = well
    site.kubectl("patch", "crd", "runs.fairlead.dev", "--type=json", "-p", json.dumps(change))
    line_with(problems(site), "definition of Runs", "this version")


def test_rights_that_are_missing_are_named(well: Site, tmp_path: Path) -> None:
    """Those of the programs, and those of whoever asks."""
    site = well
    remove = [{"op": "remove", "path": "/rules/0"}]
    role = ("clusterrole", "fairlead-webhook")
    site.kubectl("patch", *role, "--type=json", "-p", json.dumps(remove))
    (missing,) = problems(site)
    mentions(missing, "error permissions:", f"ServiceAccount {NAMESPACE}/fairlead-webhook may not")
    token = site.kubectl("create", "token", "default", "-n", "default").strip()
    config = yaml.safe_load(site.plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    found = problems(site, "--kubeconfig", str(kubeconfig))
    assert any(
        each.startswith("warning permissions:") and "may not patch" in each for each in found
    )
    assert any("not checked: " in each and "webhook configuration: " in each for each in found)
    said = site.run("doctor", "--check", "unplaced pods", "--kubeconfig", str(kubeconfig)).stdout
    mentions(said.splitlines()[0], "unknown unplaced pods: ", "not known: ")
    assert not any("there is no" in each for each in found)


def serve_by(site: Site, leaf: Pair, bundle: bytes) -> None:
    """Write the serving Secret."""
    data = {"tls.crt": leaf.certificate, "tls.key": leaf.private_key, "ca.crt": bundle}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": names.SERVING_SECRET, "namespace": NAMESPACE},
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }
    site.kubectl("apply", "-f", "-", stdin=json.dumps(secret))


@pytest.fixture
def behind_its_service(well: Site) -> Iterator[tuple[Site, Pair]]:
    """Pods are to be sent to the Service, but the webhook is disabled: nothing is behind it.

    Beside it the authority of a leaf that is as it should be, and everywhere where it should be.
    """
    site = well
    authority = new_authority("fairlead", datetime.now(UTC))
    serve_by(site, leaf_by(authority), authority.certificate)
    site.kubectl("delete", *CONFIGURATION)
    entries = webhooks(ca_bundle=authority.certificate)
    configuration = {**head(), "webhooks": [{**each, "rules": []} for each in entries]}
    site.kubectl("create", "-f", "-", stdin=json.dumps(configuration))
    assert site.run("disable", "--for", "1h").exit_code == 0
    yield site, authority
    site.kubectl("delete", *CONFIGURATION)
    site.kubectl("delete", "secret", names.SERVING_SECRET, "-n", NAMESPACE, "--ignore-not-found")


def head() -> Json:
    """What the webhook configuration is."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "fairlead"},
    }


def leaf_by(
    authority: Pair, *, name: str = SERVER_NAME, made: datetime | None = None, days: float = 30
) -> Pair:
    """A serving certificate."""
    now = made or datetime.now(UTC)
    return issue_server(
        authority, "fairlead-webhook", Names((name,)), now, lifetime=timedelta(days=days)
    )


def told(site: Site, check: str) -> list[str]:
    """What one check says."""
    return [each["what"] for each in site.findings() if each["check"] == check]


def test_certificates_are_judged(behind_its_service: tuple[Site, Pair]) -> None:
    """Their life, their names, and who vouches for them."""
    site, authority = behind_its_service
    assert [told(site, check) for check in ("certificates", "trust", "endpoints")] == [[], [], []]
    bundle = authority.certificate
    serve_by(site, leaf_by(authority, name="elsewhere.svc"), bundle)
    (found,) = told(site, "certificates")
    mentions(found, f"not for {SERVER_NAME}")
    other = new_authority("other", datetime.now(UTC))
    serve_by(site, leaf_by(other), bundle)
    assert "none of the authorities" in " ".join(told(site, "certificates"))
    assert len([each for each in told(site, "trust") if "does not vouch for" in each]) == 2
    patch(site, {"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"})
    assert "pods-0.fairlead.dev has no caBundle" in " ".join(told(site, "trust"))
    text = base64.b64encode(other.certificate).decode()
    patch(site, {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": text})
    assert "differ" in " ".join(told(site, "trust"))
    long_ago = datetime.now(UTC) - timedelta(days=60)
    old = new_authority("old", long_ago)
    serve_by(site, leaf_by(old, made=long_ago), old.certificate)
    assert "certificate expired on" in " ".join(told(site, "certificates"))
    serve_by(site, leaf_by(old, made=long_ago, days=61), old.certificate)
    assert "should have been renewed" in " ".join(told(site, "certificates"))
    site.kubectl("delete", "secret", names.SERVING_SECRET, "-n", NAMESPACE)
    assert "nothing to serve with" in " ".join(told(site, "certificates"))


def test_endpoints_are_counted(behind_its_service: tuple[Site, Pair]) -> None:
    """One is too few to lose, none is too few."""
    site, _ = behind_its_service
    scale = ("scale", "deployment", "fairlead-webhook", "-n", NAMESPACE)
    site.kubectl(*scale, "--replicas=1")
    eventually(
        "one replica is left", lambda: "one ready replica" in " ".join(told(site, "endpoints"))
    )
    site.kubectl(*scale, "--replicas=0")
    eventually("none is left", lambda: "has no ready endpoint" in " ".join(told(site, "endpoints")))


def test_policies_are_read_as_the_webhook_reads_them(
    behind_its_service: tuple[Site, Pair],
) -> None:
    """What is wrong is told with its place; it is stored only where nobody judges it."""
    site, _ = behind_its_service
    refused = site.kubectl.run("apply", "-f", "-", stdin=SETTING)
    mentions(refused.stderr, "no capacity class 'none'")
    site.kubectl("delete", "validatingwebhookconfiguration", "fairlead")
    (found,) = told(site, "judgement")
    mentions(found, "no ValidatingWebhookConfiguration fairlead:", "policies are")
    eventually(
        "policies can be written",
        lambda: site.kubectl.run("apply", "-f", "-", stdin=SETTING).returncode == 0,
    )
    (found,) = told(site, "policies")
    mentions(found, "the cluster: placementpolicies/setting: ", "spec.overrides.capacity[0].class")
    site.kubectl("delete", "placementpolicy", "setting")


def test_a_namespace_that_is_nearly_marked_is_told(well: Site) -> None:
    """Only one value means that every pod is placed."""
    well.plane.create_namespace("nearly", {names.PLACE: "yes"})
    (found,) = problems(well)
    mentions(found, "warning namespaces: ", "nearly", f"{names.PLACE}: yes", "means nothing")
    well.kubectl("label", "namespace", "nearly", f"{names.PLACE}-")


def test_without_a_controller_nobody_leads(well: Site) -> None:
    """Its Lease tells."""
    well.plane.stop_component("fairlead-controller")
    well.kubectl("delete", "lease", "fairlead-controller", "-n", NAMESPACE)
    (found,) = problems(well)
    mentions(found, "error leader: ", "no controller leads")
    start_controller(well.plane, options=LEASE)
