"""`fairlead doctor`, on a real API server: what it finds, it finds for real.

The pages about a rollout and the weeks after it, which rely on it, are played on the same cluster.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.cluster.accounts import account
from tests.cluster.cures import PLAYS, commands_of
from tests.cluster.installed import GUIDES, PAGES, ROOT, commands, files, run
from tests.cluster.manifests import SPOT, open_definition, pod
from tests.cluster.paths import path
from tests.cluster.sites import NAMESPACE, WEBHOOK, Site, build
from tests.cluster.spaces import metric
from tests.control_planes import StartControlPlane
from tests.eventually import eventually
from tests.objects import an_object
from tests.server.serving import get
from tests.wording import line_with, mentions
from webhook import metric_names, names
from webhook.cli import fairlead
from webhook.installation.doctor.diagnose import CHECKS
from webhook.installation.manifests import render
from webhook.sandbox.api import install_definitions
from webhook.sandbox.control_plane import Settings
from webhook.sandbox.fairlead import SandboxController, start_controller
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.simulated_nodes import SHIPPED_NODES, read_pools

Json = dict[str, Any]
CONFIGURATION = ("mutatingwebhookconfiguration", "fairlead")
LEASE = ("--lease-namespace", NAMESPACE)


class Led(Site):
    """A site with a controller that leads."""

    controller: SandboxController


@pytest.fixture(scope="module")
def site(start_module_plane: StartControlPlane, kubectl_path: Path) -> Led:
    """A cluster with Fairlead, a webhook that answers and a controller that leads."""
    settings = Settings(pools=read_pools(SHIPPED_NODES))
    plane = start_module_plane(settings)
    made = build(plane, Kubectl(kubectl_path, plane.kubeconfig))
    site = Led(made.plane, made.kubectl, made.port, made.health_port)
    found = site.run("doctor")
    assert found.exit_code == 1
    line_with(found.stdout, "installation:", "not in this cluster")
    site.install()
    controller = start_controller(plane, options=(*LEASE, "--certificates"))
    object.__setattr__(site, "controller", controller)
    return site


@pytest.fixture
def well(site: Led) -> Led:
    """The same, with nothing wrong when the test begins."""
    if problems(site):
        site.install()
        eventually("nothing is wrong", lambda: problems(site) == [])
    return site


INTERCEPTION = ("--check", "interception")
# No process is in kwok's pods, so that nobody can read their metrics.
BY_METRICS = ["watches", "writes"]
ALL_BUT_WATCHES = tuple(
    word for each in CHECKS if each.name not in BY_METRICS for word in ("--check", each.name)
)


def problems(site: Site, *options: str) -> list[str]:
    """What is said of errors and warnings: `error programs: ...`."""
    return [
        f"{each['severity']} {each['check']}: {each['message']}"
        for each in site.findings(*options)
        if each["severity"] != "note"
    ]


def patch(site: Site, *operations: Json) -> None:
    """Change the webhook configuration."""
    site.change("mutatingwebhookconfigurations", "fairlead", *operations)


def test_a_good_installation_is_well(well: Site) -> None:
    """Every check says so, but for what kwok's pods and a webhook by URL cannot be asked."""
    found = well.run("doctor")
    assert found.exit_code == 2
    mentions(found.stdout.splitlines()[-1], "No problem found", "in what could be read")
    document = json.loads(well.run("doctor", "-o", "json").stdout)
    assert (document["errors"], document["warnings"]) == (0, 0)
    assert {"end to end", "guards", "programs", "leader", "agents"} <= set(document["ok"])
    assert document["unknown"] == BY_METRICS
    (unread,) = document["unread"]
    mentions(
        unread["cure"],
        "does not reach its port",
        "port 8081 of the pods of fairlead-webhook",
        "port 8082 of the pods of fairlead-controller",
    )
    assert "rights" not in unread["cure"]
    made = well.run("doctor", *ALL_BUT_WATCHES)
    assert made.exit_code == 0
    mentions(made.stdout.splitlines()[-1], "No problem found.")
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
    line_with(found, "error unplaced pods: in default", "5 pods", "no stamp", shown)
    line_with(found, "error unplaced pods: in team", "1 pod ", "no stamp", "of-the-team")
    line_with(found, "error end to end:", "in default", "without a stamp")
    assert not any("well-placed" in each for each in found)
    only_there = problems(site, "--namespace", "team", "--check", "unplaced pods")
    assert [each for each in only_there if "in default" in each] == []
    notes = [each["message"] for each in site.findings() if each["severity"] == "note"]
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
    line_with(problems(site, *INTERCEPTION), "error interception: pods-0", "Fail was installed")
    site.kubectl(
        *("-n", NAMESPACE, "annotate", "deployment", names.CONTROLLER),
        f"{names.FAILS_OPEN}=true",
    )
    line_with(problems(site, *INTERCEPTION), "no guard reports")
    patch(site, {"op": "replace", "path": f"{entry}/rules", "value": []})
    found = problems(site, *INTERCEPTION)
    line_with(found, "error interception: pods-0.fairlead.dev ", "no rules", "no end is recorded")
    site.run("webhook", "disable", "--for", "1h")
    line_with(problems(site, *INTERCEPTION), "disabled until")
    past = f"{names.DISABLED_UNTIL}=2026-01-01T00:00:00+00:00"
    site.kubectl("annotate", *CONFIGURATION, "--overwrite", past)
    line_with(problems(site, *INTERCEPTION), "to be enabled again at")
    site.plane.api.delete(path("mutatingwebhookconfigurations", "fairlead"))
    line_with(problems(site, *INTERCEPTION), "no webhook configuration")


def test_a_rollout_that_does_not_end_is_an_error(well: Led) -> None:
    """The old pods go on, and no metric of a pod has it: the new pod is not there to be asked."""
    site = well
    template = "/spec/template/spec/nodeSelector"

    def incomplete() -> float:
        of = {"deployment": names.WEBHOOK}
        return metric(site.controller.health_port, metric_names.ROLLOUT_INCOMPLETE, **of)

    def roll(*operations: Json) -> None:
        site.change("deployments", names.WEBHOOK, *operations, namespace=NAMESPACE)

    programs = ("--check", "programs")
    eventually("the rollout is complete", lambda: incomplete() == 0)
    before = site.plane.api.get(path("deployments", names.WEBHOOK, namespace=NAMESPACE))
    soon = {"op": "replace", "path": "/spec/progressDeadlineSeconds", "value": 3}
    roll({"op": "add", "path": template, "value": {"no": "such"}}, soon)
    eventually("it is not", lambda: incomplete() == 1)
    eventually("it is stuck", lambda: "rollout is stuck" in "".join(problems(site, *programs)))
    line_with(problems(site, *programs), f"error programs: Deployment {names.WEBHOOK} has")
    line_with(problems(site, *programs), "error programs: a pod waits for a node")
    deadline = before["spec"]["progressDeadlineSeconds"]
    roll({"op": "remove", "path": template}, {**soon, "value": deadline})
    eventually("it ends", lambda: incomplete() == 0)
    assert problems(site, *programs) == []


def test_removed_or_narrowed_objects_are_reported(well: Site) -> None:
    """Each of these lets something by, and nothing else says so."""
    site = well
    condition = {"name": "not-x", "expression": "object.metadata.name != 'x'"}
    entry = "/webhooks/1"
    patch(site, {"op": "add", "path": f"{entry}/matchConditions", "value": [condition]})
    line_with(problems(site, *INTERCEPTION), "matchConditions", "not-x")
    patch(site, {"op": "remove", "path": f"{entry}/matchConditions"})
    assert problems(site, *INTERCEPTION) == []
    patch(site, {"op": "remove", "path": entry})
    line_with(problems(site, *INTERCEPTION), "no entry namespaces.fairlead.dev")
    guards = "validatingadmissionpolicybindings"
    site.plane.api.delete(path(guards, names.RUN_AUTHORS_GUARD))
    line_with(
        problems(site, "--check", "guards"), "error guards:", f"Binding {names.RUN_AUTHORS_GUARD}"
    )
    site.install()
    assert problems(site) == []


OBJECTS = ("--check", "objects")


def test_every_object_that_is_gone_or_changed_is_a_warning(well: Led, tmp_path: Path) -> None:
    """By its name, with what `fairlead install` brings back, which nothing else missed."""
    site = well
    assert site.findings(*OBJECTS) == []
    site.kubectl("-n", NAMESPACE, "delete", "pdb,networkpolicy,resourcequota", "--all")
    for role in ("fairlead-runs-edit", "fairlead-policies-view"):
        site.plane.api.delete(path("clusterroles", role))
    site.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce-")
    user = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "eve"}
    controller = ("clusterrolebindings", names.CONTROLLER)
    site.change(*controller, {"op": "add", "path": "/subjects/-", "value": user})
    site.change("clusterroles", "fairlead-runs-view", {"op": "remove", "path": "/rules/0"})
    publish = {"op": "add", "path": "/spec/publishNotReadyAddresses", "value": True}
    site.change("services", names.WEBHOOK, publish, namespace=NAMESPACE)
    record = names.INTERCEPTS + names.RUN_AUTHORS_GUARD
    annotate = ("-n", NAMESPACE, "annotate", "deployment", names.CONTROLLER)
    site.kubectl(*annotate, f"{record}-")
    found = problems(site, *OBJECTS)
    for name in (names.CONTROLLER, names.WEBHOOK):
        line_with(found, f"there is no PodDisruptionBudget {NAMESPACE}/{name}")
        line_with(found, f"there is no NetworkPolicy {NAMESPACE}/{name}")
    line_with(found, f"there is no ResourceQuota {NAMESPACE}/fairlead-critical-pods")
    line_with(found, "there is no ClusterRole fairlead-runs-edit")
    line_with(found, "there is no ClusterRole fairlead-policies-view")
    line_with(found, f"Namespace {NAMESPACE}", "lacks", "pod-security.kubernetes.io/enforce")
    line_with(found, f"ClusterRoleBinding {names.CONTROLLER}", "eve", "in addition")
    line_with(found, "ClusterRole fairlead-runs-view", "lacks rules")
    line_with(found, f"Service {NAMESPACE}/{names.WEBHOOK}", "publishNotReadyAddresses", "wrote it")
    line_with(found, f"Deployment {NAMESPACE}/{names.CONTROLLER}", "lacks", record)
    assert len(found) == 12
    assert {each["cure"].split(" lists")[0] for each in site.findings(*OBJECTS)} == {
        "fairlead install"
    }
    site.kubectl("-n", NAMESPACE, "scale", "deployment", names.WEBHOOK, "--replicas=4")
    (scaled,) = [each for each in site.findings(*OBJECTS) if each["severity"] == "note"]
    mentions(scaled["message"], "has spec.replicas 4, and 3 was installed")
    site.install()
    assert site.findings(*OBJECTS) == []
    kubeconfig = account(site.kubectl.within("default"), "default", tmp_path / "kubeconfig")
    told = site.run("doctor", *OBJECTS, "--kubeconfig", str(kubeconfig))
    assert told.exit_code == 2
    line_with(told.stdout, "unknown", "objects: could not read deployments")


def test_rights_that_are_missing_are_named(well: Site, tmp_path: Path) -> None:
    """Those of the programs, and those of whoever asks."""
    site = well
    site.change("clusterroles", "fairlead-webhook", {"op": "remove", "path": "/rules/0"})
    (missing,) = problems(site, "--check", "permissions")
    mentions(missing, "error permissions:", f"ServiceAccount {NAMESPACE}/fairlead-webhook may not")
    kubeconfig = account(site.kubectl.within("default"), "default", tmp_path / "kubeconfig")
    found = problems(site, "--kubeconfig", str(kubeconfig))
    assert any(
        each.startswith("warning permissions:") and "may not patch" in each for each in found
    )
    done = site.run("doctor", "-o", "json", "--kubeconfig", str(kubeconfig))
    unread = {each["what"]: each["cure"] for each in json.loads(done.stdout)["unread"]}
    mentions(unread["the webhook configuration"], "administrator's rights")
    said = site.run("doctor", "--check", "unplaced pods", "--kubeconfig", str(kubeconfig)).stdout
    mentions(said.splitlines()[0], "unknown unplaced pods: could not read")
    assert not any("there is no" in each for each in found)


@pytest.fixture
def cron_job(well: Site) -> Iterator[Json]:
    """The CronJob of the component `doctor`, whose objects are all there."""
    component = render((), ("doctor",))
    for each in component.values():
        assert well.apply(each) == ""
    (found,) = (each for key, each in component.items() if key.kind.name == "CronJob")
    yield found
    for key in reversed(component):
        well.plane.api.delete(str(key.path))


def test_the_cron_job_reads_all_that_doctor_reads_and_creates_nothing(
    well: Site, cron_job: Json, tmp_path: Path
) -> None:
    """Its arguments, with its ServiceAccount's token: what an administrator's doctor finds."""
    pod_spec = cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    name = pod_spec["serviceAccountName"]
    command, *options = pod_spec["containers"][0]["args"]
    token = account(well.kubectl.within(NAMESPACE), name, tmp_path / "kubeconfig")
    own = ("--kubeconfig", str(token))

    def seen() -> tuple[Json, Json]:
        by_admin, by_it = (
            json.loads(well.run(command, *options, "-o", "json", *whose).stdout)
            for whose in ((), own)
        )
        # What an admin may do besides, and the CronJob may not.
        rest = [each for each in by_it["findings"] if "may not" not in each["message"]]
        assert {each["check"] for each in by_it["findings"] if each not in rest} <= {"permissions"}
        return by_admin, {**by_it, "findings": rest}

    by_admin, by_it = seen()
    assert by_it["unknown"] == by_admin["unknown"]
    # Which replica does not answer first is chance; a right that is missing has another cure.
    cures, wanted = ([(u["what"], u["cure"]) for u in each["unread"]] for each in (by_it, by_admin))
    assert cures == wanted
    assert by_it["findings"] == by_admin["findings"]
    assert well.run(command, *options, *ALL_BUT_WATCHES, *own).exit_code == 0
    its = well.kubectl.within("default")
    for body in (pod("real"), cron_job_class()):
        stdin = json.dumps(body)
        tried = ("create", "-f", "-", "--validate=false", f"--kubeconfig={token}")
        assert its.run(*tried, "--dry-run=server", stdin=stdin).returncode == 0
        mentions(its.run(*tried, stdin=stdin).stderr, "by dry run only")
    well.change("clusterroles", "fairlead-webhook", {"op": "remove", "path": "/rules/0"})
    failed = well.run(command, *options, *own)
    (rule,) = cron_job["spec"]["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    assert [failed.exit_code] == rule["onExitCodes"]["values"]


def cron_job_class() -> Json:
    """A class that nobody has."""
    spec = {"nodes": [{"labels": {"example.com/pool": "real"}}]}
    return an_object(names.API_VERSION, names.CLASS_KIND, "real", spec)


def test_a_doctor_that_finds_errors_is_a_failed_job_with_an_event(
    well: Site, cron_job: Json
) -> None:
    """At once, and not after three pods."""
    spec = cron_job["spec"]["jobTemplate"]["spec"]
    # On no node, so that kwok does not end it well.
    spec["template"]["spec"]["nodeSelector"] = {"example.com/pool": "none"}
    about = {"name": "looks", "namespace": NAMESPACE}
    assert well.apply(an_object("batch/v1", "Job", about, spec)) == ""
    where = path("pods", namespace=NAMESPACE)

    def its() -> list[Json]:
        listed: Json = well.plane.api.get(f"{where}?labelSelector=job-name=looks")
        return list(listed["items"])

    (made,) = eventually("its pod is there", its)
    ended = {"exitCode": 1, "reason": "Error", "finishedAt": "2026-01-01T00:00:00Z"}
    container = {
        "name": "doctor",
        "image": "fairlead",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": ended},
    }
    status = {"phase": "Failed", "containerStatuses": [container]}
    well.plane.api.call(
        "PATCH",
        f"{where}/{made['metadata']['name']}/status",
        {"status": status},
        content_type="application/merge-patch+json",
    )

    def failed() -> str:
        job: Json = well.plane.api.get(path("jobs", "looks", namespace=NAMESPACE))
        conditions = job["status"].get("conditions") or ()
        return next((each["reason"] for each in conditions if each["type"] == "Failed"), "")

    assert eventually("the Job has failed", failed) == "PodFailurePolicy"
    events = partial(
        well.kubectl.within(NAMESPACE), "get", "events", "-o", "jsonpath={.items[*].message}"
    )
    eventually("an Event has the exit code", lambda: "exit code 1" in events())
    assert len(its()) == 1
    well.kubectl.within(NAMESPACE)("delete", "job", "looks")


# A class without the taint of its nodes, and a PriorityClass that does not exist. The taint of the
# last one's nodes is tolerated by a plugin, if it runs, for pods that request their GPUs.
UNMET = """
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: no-taint}
spec: {nodes: [{labels: {cloud.google.com/gke-nodepool: spot}}]}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: on-no-taint}
spec:
  match: {namespaces: [lab]}
  overrides: {capacity: [{class: no-taint, mode: Constrain}]}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: urgent}
spec:
  match: {namespaces: [lab]}
  overrides: {priorityClassName: urgent-work}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: on-gpus}
spec:
  match: {namespaces: [other]}
  overrides: {nodeSelector: {cloud.google.com/gke-nodepool: gpu}}
"""


@pytest.fixture
def unmet(well: Site) -> Iterator[str]:
    """What kubectl says when policies are written that no pod can meet."""
    applied = well.kubectl.run("apply", "-f", "-", stdin=UNMET)
    assert applied.returncode == 0
    well.plane.create_namespace("lab")
    yield applied.stderr
    well.kubectl.run("delete", "-f", "-", stdin=UNMET)
    well.kubectl("delete", "namespace", "lab", "--wait=false")


def satisfiable(site: Site, status: str) -> dict[str, str]:
    """The messages of the policies with this status of the condition, by name."""
    listed = site.plane.api.get(path(names.PLACEMENT_POLICIES))["items"]
    conditions = [
        (each["metadata"]["name"], one)
        for each in listed
        for one in (each.get("status") or {}).get("conditions", ())
    ]
    return {
        name: one["message"]
        for name, one in conditions
        if (one["type"], one["status"]) == ("Satisfiable", status)
    }


def test_a_write_check_the_status_and_doctor_say_the_same_of_policies(
    well: Site, unmet: str
) -> None:
    """Policies with which no pod of a namespace runs are an error of the installation."""
    site = well
    taint, priority = "tolerates none of the chosen nodes' taints", "no PriorityClass 'urgent-work'"
    # The webhook knows nodes with --nodes only.
    mentions(unmet, priority)

    def unsatisfied() -> dict[str, str]:
        return satisfiable(site, "False")

    eventually("the statuses say so", lambda: {*unsatisfied()} == {"on-no-taint", "urgent"})
    said = unsatisfied()
    mentions(said["on-no-taint"], taint)
    mentions(said["urgent"], priority)
    checked = site.run("check", "cluster", "--nodes", "cluster", "-o", "json")
    assert checked.exit_code == 1
    messages = [each["message"] for each in json.loads(checked.stdout)["findings"]]
    found = problems(site, "--check", "policies")
    assert len(found) == len(messages) == 3
    said |= satisfiable(site, "Unknown")
    mentions(said["on-gpus"], taint, "ExtendedResourceToleration", "request nvidia.com/gpu")
    for message in messages:
        assert any(message in each for each in found)
        assert any(message in each for each in said.values())
    assert site.run("doctor", "--check", "policies").exit_code == 1
    # The API server names the class in the Job's Event, and no policy.
    template = {
        "metadata": {"labels": {names.RUN: "r"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "x.invalid/y"}]},
    }
    job = an_object("batch/v1", "Job", "train", {"template": template, "backoffLimit": 0})
    site.plane.api.create("/apis/batch/v1/namespaces/lab/jobs", job)
    events = path("events", namespace="lab")

    def told() -> list[str]:
        found = site.plane.api.get(events)["items"]
        return [each["message"] for each in found if each["reason"] == "PlacementRejected"]

    eventually(
        "an Event names the policy",
        told,
        explain=lambda: site.kubectl.within("lab")("get", "events,jobs,pods", "-o", "yaml"),
    )
    mentions(told()[0], "policy urgent", priority, "Job train")


@pytest.mark.parametrize("command", list(PLAYS))
def test_a_cure_that_is_a_command_ends_what_it_is_printed_for(well: Site, command: str) -> None:
    """As it is printed, from a checkout."""
    site, play = well, PLAYS[command]

    def found() -> list[Json]:
        listed = site.findings("--check", play.check)
        return [each for each in listed if play.words in each["message"]]

    play.make(site)
    eventually("it is found", found)
    try:
        (printed,) = [each for each in commands_of(found()[0]["cure"]) if each.startswith(command)]
        run(printed, ROOT, site.plane.kubeconfig, site.kubectl.path)
        ended = play.ended or (lambda _site: not found())
        eventually("the command ends it", lambda: ended(site))
    finally:
        play.after(site)


def carry_out(site: Site, part: str, folder: Path, more: Mapping[str, Sequence[str]]) -> None:
    """Write the files of a part of a page, and run its commands; each ends with exit code 0.

    What the pages about installing have too is left to test_installing.py. `more`: a subcommand of
    fairlead -> what it needs where pods are kwok's and the webhook has an address, no Service.
    """
    environ = {"KUBECONFIG": str(site.plane.kubeconfig)}
    for name, text in files(part).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    elsewhere = {command for page in PAGES for command in commands(page.read_text())}
    for command in commands(part):
        if command in elsewhere:
            continue
        program, *words = shlex.split(command, comments=True)
        if program != "fairlead":
            run(command, folder, site.plane.kubeconfig, site.kubectl.path)
            continue
        arguments = [*words, *more.get(" ".join(words[: 1 + (words[0] == "policy")]), ())]
        done = CliRunner().invoke(fairlead, arguments, env=environ)
        assert done.exit_code == 0, (command, done.output)


def goes_to_spot(site: Site, namespace: str, **labels: str) -> bool:
    """Whether a new worker there is given to spot nodes, by dry run."""
    worker = pod("worker", labels={names.RUN: "r", names.ROLE: "worker", **labels})
    found = site.plane.api.create(f"{path('pods', namespace=namespace)}?dryRun=All", worker)
    return SPOT in {each.get("key") for each in found["spec"].get("tolerations", ())}


@pytest.fixture
def desk(well: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which an admin types, beside the checkout's; afterwards no policy is left."""
    for kind in ("PrometheusRule", "ServiceMonitor"):
        install_definitions(well.plane.api, [open_definition("monitoring.coreos.com", kind)])
    for name in ("manifests", "policies"):
        (tmp_path / name).symlink_to(ROOT / name)
    well.plane.create_namespace("research")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    well.kubectl("delete", f"{names.PLACEMENT_POLICIES},{names.PLACEMENT_EXCEPTIONS}", "--all")
    well.kubectl("delete", "namespace", "research", "--wait=false")


def test_a_day_of_rollout_goes_as_its_page_says(well: Site, desk: Path) -> None:
    """Every command, in order; and who goes to spot nodes after each step."""
    site, metrics = well, desk / "metrics"
    more = {
        "install": (*site.at_its_address, "--yes"),
        "policy audit": ("--metrics", str(metrics)),
        "doctor": ALL_BUT_WATCHES,
    }
    page = (GUIDES / "production.md").read_text()
    _, *steps = re.split(r"^## ", page, flags=re.MULTILINE)
    loader = {"app": "loader"}
    assert [step.split(".")[0] for step in steps[:-2]] == list("1234567")
    for step in steps:
        metrics.write_bytes(get(site.health_port, "/metrics")[1])
        carry_out(site, step, desk, more)
        if step[0] in "234":
            assert not goes_to_spot(site, "research")
        elif step[0] == "5":
            eventually("it is enforced there", lambda: goes_to_spot(site, "research"))
            assert goes_to_spot(site, "research", **loader)
            assert not goes_to_spot(site, "default")
        elif step[0] == "6":
            eventually("it is excepted", lambda: not goes_to_spot(site, "research", **loader))
        elif step[0] == "7":
            eventually("it is enforced", lambda: goes_to_spot(site, "default"))
            assert not goes_to_spot(site, "research", **loader)
        elif step.startswith("Go back"):
            eventually("it is enforced no more", lambda: not goes_to_spot(site, "default"))
    operate = (GUIDES / "operate.md").read_text()
    for command in commands(page):
        operate = operate.replace(f"$ {command}\n", "")
    carry_out(site, operate, desk, more)
    assert "kind: PlacementPolicy" in (desk / "policies-backup.yaml").read_text()
