"""The pages about installing work, command by command, on a real API server.

The pods that its Deployments make are kwok's, which run nothing. So both programs run here as
processes, with the Deployments' own arguments and tokens of their ServiceAccounts.
"""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from click.testing import CliRunner, Result

from tests.cli.served import Served, ask, served
from tests.cluster.every_right import EVERY_RIGHT
from tests.cluster.installed import (
    ROOT,
    UNINSTALLING,
    Installed,
    Json,
    commands,
    run,
)
from tests.cluster.live_runs import create_run
from tests.cluster.rights import Right, granted, refused, used
from tests.cluster.spaces import LOOK
from tests.cluster.test_plugins import DEFINITIONS, FLAVORS
from tests.eventually import eventually
from tests.manifests.kustomize import overlay
from tests.manifests.monitoring import expressions, missing
from tests.objects import an_object
from tests.server.serving import get, readiness
from tests.wording import mentions
from webhook import names
from webhook.cli import fairlead
from webhook.interception import DEFAULT_SOURCES
from webhook.interception import webhooks as entries_of
from webhook.sandbox.fairlead import SandboxController, start_controller
from webhook.server.notices import CREATED
from webhook.validating import WORKLOADS_PATH

pytest_plugins = ["tests.cluster.installed_fixtures"]

CONFIGURATION = "mutatingwebhookconfiguration"
# The one namespace that pods are sent of, and in which there are none.
NOWHERE = "nowhere"
# Watched and written with a rotation, which is asked for.
SECRETS = (names.AUTHORITY_SECRET, names.SERVING_SECRET)


@dataclass(frozen=True)
class Scheduled:
    """What there was once all pods had nodes: the pods, and how many the quota counted."""

    pods: list[Json]
    counted: int


@pytest.fixture(scope="module")
def scheduled(installed: Installed) -> Scheduled:
    """Looked at before the pods go."""

    def newest() -> list[Json]:
        return [pod for pod in installed.home.pods() if "deletionTimestamp" not in pod["metadata"]]

    def bound() -> bool:
        return len(newest()) == 5 and all("nodeName" in pod["spec"] for pod in newest())

    def counted() -> int:
        quota = installed.home.get("resourcequotas", "fairlead-critical-pods")
        return int(quota["status"]["used"]["pods"])

    eventually("five pods have nodes", bound, explain=newest, period=LOOK)
    eventually("the quota counts them", lambda: counted() == 5, explain=counted)
    return Scheduled(newest(), counted())


@pytest.fixture(scope="module")
def quiet(
    installed: Installed,
    scheduled: Scheduled,  # noqa: ARG001  (it has looked at the pods)
) -> Installed:
    """Nobody is sent to pods that kwok only claims to run: no replica, and no pod is sent.

    A request to one of their addresses would leave this machine.
    """
    for name in (names.WEBHOOK, names.CONTROLLER):
        installed.kubectl("scale", "deployment", name, "--replicas=0")

    space = installed.home

    def endpoints() -> list[Json]:
        slices = space.items("endpointslices")
        return [each for one in slices for each in one["endpoints"] or ()]

    eventually("no pod is left", lambda: not space.pods() and not endpoints(), period=LOOK)
    count = len(webhooks(installed))
    nowhere = {"matchLabels": {"kubernetes.io/metadata.name": NOWHERE}}
    patch = [
        {"op": "replace", "path": f"/webhooks/{number}/namespaceSelector", "value": nowhere}
        for number in range(count)
    ]
    installed.kubectl("patch", CONFIGURATION, "fairlead", "--type=json", "-p", json.dumps(patch))
    return installed


def webhooks(installed: Installed) -> list[Json]:
    """The entries of the webhook's configuration."""
    found: list[Json] = installed.home.get(f"{CONFIGURATION}s", "fairlead")["webhooks"]
    return found


@pytest.fixture(scope="module")
def controller(quiet: Installed) -> SandboxController:
    """The controller, as the Deployment runs it; it ends with the cluster."""
    command, *options = quiet.arguments(names.CONTROLLER)
    assert command == "controller"
    # What the pod's own namespace would say, and less patience than clusters of many API servers.
    beside = ("--lease-namespace", names.NAMESPACE, "--certificate-settle", "0.5")
    return start_controller(
        quiet.plane,
        name=names.CONTROLLER,
        kubeconfig=quiet.account(names.CONTROLLER),
        options=(*options, *beside),
    )


@pytest.fixture(scope="module")
def webhook(
    quiet: Installed,
    controller: SandboxController,  # noqa: ARG001  (it makes the certificate)
) -> Iterator[Served]:
    """The webhook, as the Deployment runs it."""
    with replica(quiet) as server:
        server.wait_ready()
        yield server


@contextmanager
def replica(installed: Installed, *more: str) -> Iterator[Served]:
    """One replica, with the Deployment's arguments, and more."""
    command, *options = installed.arguments(names.WEBHOOK)
    assert command == "serve"
    cluster = ("--kubeconfig", str(installed.account(names.WEBHOOK)))
    given = (*options, *more)
    with served(installed.folder, *given, policies=(), certificate=(), cluster=cluster) as server:
        yield server


def test_nothing_that_is_applied_is_warned_of(installed: Installed) -> None:
    """Pod Security would warn of a Deployment whose pods it will refuse."""
    warned = {
        command: said for command, said in installed.said.items() if "warning" in said.lower()
    }
    assert warned == {}


def test_the_pods_are_admitted_and_scheduled(installed: Installed, scheduled: Scheduled) -> None:
    """Under the restricted level and the quota, on the nodes that are Fairlead's own."""
    namespace = installed.kubectl.json("get", "namespace", names.NAMESPACE)
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert (len(scheduled.pods), scheduled.counted) == (5, 5)
    for pod in scheduled.pods:
        assert pod["spec"]["nodeName"].startswith("system-")
        assert pod["spec"]["priority"] == 2_000_000_000
        (container,) = pod["spec"]["containers"]
        assert container["image"] == "example.invalid/team/fairlead:0.1.0"


def test_a_pod_that_is_not_restricted_is_refused(installed: Installed) -> None:
    """So that the test above says something."""
    refused = installed.kubectl.run("run", "root", "--image=example.invalid/none")
    assert 'violates PodSecurity "restricted' in refused.stderr


def test_the_entries_are_those_of_the_sources_that_were_chosen(installed: Installed) -> None:
    """In the order of `fairlead install`: the last of a pod's marks names what is refused."""
    chosen = (*DEFAULT_SOURCES, "mlrun", "kubeflow-training")
    found = webhooks(installed)
    assert [each["name"] for each in found] == [each["name"] for each in entries_of(chosen)]
    assert all(entry["failurePolicy"] == "Fail" for entry in found)


def test_the_webhook_serves_with_a_certificate_that_the_api_server_will_trust(
    quiet: Installed, webhook: Served
) -> None:
    """Made and published by the controller, for the one name that is checked.

    The one thing that is not tried here is the way from the Service to a container.
    """
    judging = quiet.kubectl.json("get", "validatingwebhookconfiguration", "fairlead")["webhooks"]
    for entry in (*webhooks(quiet), *judging):
        with called(webhook, entry) as connection:
            assert connection.version() == "TLSv1.3"


@contextmanager
def called(webhook: Served, entry: Json) -> Iterator[ssl.SSLSocket]:
    """A connection as the API server makes it: by the entry's bundle and the Service's name."""
    bundle = base64.b64decode(entry["clientConfig"]["caBundle"]).decode()
    service = entry["clientConfig"]["service"]
    name = f"{service['name']}.{service['namespace']}.svc"
    context = ssl.create_default_context(cadata=bundle)
    with (
        socket.create_connection(("127.0.0.1", webhook.port)) as plain,
        context.wrap_socket(plain, server_hostname=name) as connection,
    ):
        yield connection


@dataclass(frozen=True)
class Rights:
    """Those that the webhook's account was granted, made use of, and asked for in vain."""

    granted: set[Right]
    used: set[Right]
    refused: set[Right]


def label_all(installed: Installed) -> None:
    """Create a policy that sets a label; the webhook is not reached at its Service's address."""
    kind = "validatingwebhookconfiguration"
    for policy in ("Ignore", "Fail"):
        patch = [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": policy}]
        installed.kubectl("patch", kind, "fairlead", "--type=json", "-p", json.dumps(patch))
        if policy == "Ignore":
            spec = {"match": {"namespaces": [NOWHERE]}, "defaults": {"labels": {"team": "ml"}}}
            made = an_object(names.API_VERSION, names.POLICY_KIND, "labels-all", spec)
            installed.kubectl("create", "-f", "-", stdin=json.dumps(made))


def labels_in(answer: bytes) -> bool:
    """Whether the patch of an answer has the label."""
    patch = json.loads(answer)["response"].get("patch", "")
    return b"team" in base64.b64decode(patch)


@pytest.fixture(scope="module")
def rights(quiet: Installed, webhook: Served) -> Rights:
    """Looked at once it has had to use all of them, and before any other is granted.

    It asks for a namespace that it has not heard of, and watches all else, also Kueue's flavors
    where there is their definition. For the Jobs, JobSets
    and so on whose pods it rejects, it looks for their owners and writes Events. For TrainJobs it
    looks for their runtimes, for a worker of a PaddleJob for the job, for the pod of a DaemonSet
    that gets a label for its selector.
    """
    quiet.plane.api.create(DEFINITIONS, FLAVORS)
    with called(webhook, webhooks(quiet)[0]) as connection:
        client = http.client.HTTPConnection("webhook")
        client.sock = connection
        ask(client, created_in("unheard-of"))
        quiet.plane.create_namespace(NOWHERE)
        for group, kind in CREATED:
            owner = {"apiVersion": f"{group}/v1", "kind": kind, "name": "o", "uid": kind}
            asking: Json = {
                "annotations": {names.CAPACITY: "nowhere=Constrain"},
                "ownerReferences": [{**owner, "controller": True}],
            }
            ask(client, created_in(NOWHERE, **asking))
        worker = {
            "operator-name": "paddlejob-controller",
            "job-name": "p",
            "replica-type": "worker",
            "replica-index": "0",
        }
        label_all(quiet)
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "o", "uid": "o"}
        owned = created_in(NOWHERE, ownerReferences=[{**owner, "controller": True}])
        eventually("it is labelled", lambda: labels_in(ask(client, owned)[1]), period=LOOK)
        marked = {f"training.kubeflow.org/{key}": value for key, value in worker.items()}
        _, answer = ask(client, created_in(NOWHERE, labels={names.RUN: "r", **marked}))
        mentions(answer.decode(), "labels alone", "PaddleJob p cannot be read")
        for kind in ("ClusterTrainingRuntime", "TrainingRuntime"):
            review = created_in(NOWHERE)
            review["request"]["object"] = an_object(
                "trainer.kubeflow.org/v1alpha1",
                "TrainJob",
                {"name": "t", "namespace": NOWHERE},
                {"runtimeRef": {"kind": kind, "name": "torch"}},
            )
            _, answer = ask(client, review, path=WORKLOADS_PATH)
            mentions(answer.decode(), "TrainJob t", "not checked", "torch")
    wanted = granted(quiet, names.WEBHOOK)
    return Rights(wanted, used(quiet, names.WEBHOOK, wanted), refused(quiet, names.WEBHOOK))


def test_the_webhook_works_with_each_of_its_rights_and_no_other(rights: Rights) -> None:
    """What it watches, asks for, and writes."""
    assert rights.refused == set()
    assert rights.used == rights.granted
    assert {verb for _, _, verb, _ in rights.granted} == {"get", "list", "watch", "create"}


def test_nodes_are_watched_with_the_right_of_their_component_and_missed_without(
    quiet: Installed,
    rights: Rights,  # noqa: ARG001  (the others have been used)
) -> None:
    """Without it no pod is held up, and readiness says what is missing; with it there are warnings.

    The right is granted while the webhook runs, which asks again by itself.
    """
    lost = created_in("default", pool="typo")
    listing = ("", "nodes", "list", "")
    with replica(quiet, "--nodes") as server:
        server.wait_ready()

        def told() -> str:
            status, conditions = server.readiness()
            assert status == 200
            return str(conditions["nodes"]["reason"])

        def warnings() -> list[str]:
            with called(server, webhooks(quiet)[0]) as connection:
                client = http.client.HTTPConnection("webhook")
                client.sock = connection
                answer = json.loads(ask(client, lost)[1])["response"]
            assert answer["allowed"]
            assert "patch" in answer
            return list(answer.get("warnings", ()))

        eventually("it lacks a right", lambda: "may not list nodes" in told())
        mentions(told(), "not listed yet", "fairlead install --nodes", "component nodes")
        assert warnings() == []
        eventually("it is refused", lambda: refused(quiet, names.WEBHOOK))
        assert refused(quiet, names.WEBHOOK) == {listing}
        quiet.kubectl("apply", "-f", str(ROOT / "manifests/components/nodes/rights.yaml"))
        eventually("nodes are known", lambda: " known, last update" in told(), explain=told)
        count = len(quiet.kubectl.json("get", "nodes")["items"])
        assert told().startswith(f"{count} known, ")
        (warning,) = warnings()
        assert warning.startswith(f"fairlead: 0 of {count} nodes")
        assert "pool=typo matches none" in warning
    wanted = granted(quiet, names.WEBHOOK)
    assert {listing, ("", "nodes", "watch", "")} < wanted
    assert used(quiet, names.WEBHOOK, wanted) == wanted


def created_in(namespace: str, *, pool: str = "", **metadata: object) -> Json:
    """The review of a pod of a run, which may ask for a pool."""
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "operation": "CREATE",
            "namespace": namespace,
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "userInfo": {"username": "somebody"},
            "object": {
                "metadata": {"labels": {names.RUN: "r"}, **metadata},
                "spec": {
                    "containers": [{"name": "main", "image": "none"}],
                    "nodeSelector": {"pool": pool} if pool else {},
                },
            },
        },
    }


def test_the_controller_works_with_each_of_its_rights_and_no_other(
    quiet: Installed, controller: SandboxController, webhook: Served
) -> None:
    """Runs of each shape, and a rotation of both certificates, use all that is granted."""
    for secret in SECRETS:
        quiet.kubectl("annotate", "secret", secret, f"{names.ROTATE}=now")
    webhook.line("certificate loaded", 2)
    for name, story in EVERY_RIGHT.items():
        story(quiet.space(name))
    assert refused(quiet, names.CONTROLLER) == set()
    wanted = granted(quiet, names.CONTROLLER)
    assert used(quiet, names.CONTROLLER, wanted) == wanted
    assert readiness(controller.health_port)[0] == 200


def test_alerts_and_dashboard_name_what_both_programs_expose(
    controller: SandboxController, webhook: Served
) -> None:
    """Every series, and every label that it is selected or grouped by."""

    def lacking() -> list[str]:
        found = [webhook.metrics(), get(controller.health_port, "/metrics")[1].decode()]
        every = expressions(overlay("monitoring"))
        return [name for expression in every for name in missing(found, expression)]

    # The policies are checked some seconds after they are loaded.
    eventually("all is there", lambda: not lacking(), explain=lacking)


def allowed(installed: Installed, user: str, verb: str, resource: str, namespace: str = "") -> bool:
    """Whether the API server would let a user do this: what `kubectl auth can-i` asks it."""
    attributes = {"verb": verb, "group": names.GROUP, "resource": resource, "namespace": namespace}
    spec = {"user": user, "groups": ["system:authenticated"], "resourceAttributes": attributes}
    review = installed.plane.api.create(
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec},
    )
    answer: bool = review["status"]["allowed"]
    return answer


def test_who_may_edit_a_namespace_may_create_runs_in_it(installed: Installed) -> None:
    """The roles that every cluster has are added to."""

    def may(role: str, verb: str) -> bool:
        space = f"{role}-may-{verb}"
        installed.plane.create_namespace(space)
        kubectl = installed.kubectl.within(space)
        kubectl("create", "rolebinding", "somebody", f"--clusterrole={role}", "--user=somebody")
        return allowed(installed, "somebody", verb, names.RUNS, space)

    assert [may("edit", "create"), may("edit", "list"), may("admin", "delete")] == [True] * 3
    assert [may("view", "watch"), may("view", "create")] == [True, False]


READER = names.POLICIES_VIEW
RESOURCES = tuple(names.POLICY_RESOURCES.values())


@pytest.mark.parametrize("role", [READER, "view"])
def test_policies_are_read_by_whom_the_role_is_bound_to_for_the_cluster(
    installed: Installed, role: str
) -> None:
    """By itself or in `view`, and written by nobody; bound in a namespace it lets nobody read."""
    bound = (f"--clusterrole={role}", "--user=everywhere")
    installed.kubectl("create", "clusterrolebinding", f"reading-by-{role}", *bound)
    installed.kubectl("create", "rolebinding", f"reading-by-{role}", *bound[:1], "--user=here")
    every = ",".join(f"{resource}.{names.GROUP}" for resource in RESOURCES)
    seen = installed.kubectl("get", every, "-o", "name", "--as=everywhere")
    assert f"capacityclass.{names.GROUP}/spot" in seen
    refused = installed.kubectl.run("get", every, "--as=here")
    assert refused.returncode == 1
    assert refused.stderr.count("is forbidden") == len(RESOURCES)
    # So that the answers below say something.
    assert all(allowed(installed, "everywhere", "list", resource) for resource in RESOURCES)
    for resource in RESOURCES:
        for verb in ("create", "update", "patch", "delete", "deletecollection"):
            assert not allowed(installed, "everywhere", verb, resource), (resource, verb)
    installed.kubectl("delete", "clusterrolebinding", f"reading-by-{role}")
    installed.kubectl("delete", "rolebinding", f"reading-by-{role}")


def test_a_plain_user_who_reads_policies_is_answered(installed: Installed) -> None:
    """With `view` in one namespace; what takes more is left out with a note, or named."""
    anna = ("--serviceaccount", f"{names.NAMESPACE}:default")
    installed.kubectl("create", "clusterrolebinding", "anna", f"--clusterrole={READER}", *anna)
    installed.kubectl("create", "rolebinding", "anna", "--clusterrole=view", *anna)
    kubeconfig = ("--kubeconfig", str(installed.account("default")))

    def answer(*words: str) -> Result:
        return CliRunner().invoke(fairlead, [*words, *kubeconfig])

    told = answer("explain", "deployment", names.WEBHOOK, "-n", names.NAMESPACE)
    assert told.exit_code == 0
    mentions(told.stderr, "may not read priorityclasses")
    told = answer("policy", "exceptions")
    assert told.exit_code == 0
    mentions(told.stderr, "may not list pods")
    told = answer("policy", "list", "-n", names.NAMESPACE)
    assert told.exit_code == 0, told.stderr
    told = answer("policy", "list")
    assert (told.exit_code, "may not list pods" in told.stderr) == (2, True)
    for kind in ("clusterrolebinding", "rolebinding"):
        installed.kubectl("delete", kind, "anna")


@pytest.mark.last
def test_it_is_uninstalled_with_all_runs(
    installed: Installed,
    controller: SandboxController,  # noqa: ARG001  (it makes the Run's pods)
) -> None:
    """By the commands of its page, in their order."""
    space = installed.space("last")
    create_run(space, "last", framework="jax", replicas={"worker": {"count": 2}})
    space.wait_for_pods(2)
    for command in commands(UNINSTALLING.read_text()):
        run(command, installed.folder, installed.plane.kubeconfig, installed.kubectl.path)
    eventually("no pod is left", lambda: not space.pods(), period=LOOK)
    ours = ("-l", "app.kubernetes.io/part-of=fairlead")
    kinds = "clusterroles,clusterrolebindings,namespaces,crds"
    configurations = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
    assert installed.kubectl.json("get", f"{kinds},{configurations}", *ours)["items"] == []
