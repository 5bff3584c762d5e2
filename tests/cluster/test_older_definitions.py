"""An older definition of policies, with every program of this version: no policy is widened."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.admission.reviews import review
from tests.cli.served import ask, served
from tests.cluster import etcd
from tests.cluster.paths import path
from tests.cluster.spaces import Running, metric
from tests.cluster.webhooks import serving_objects
from tests.control_planes import StartControlPlane
from tests.crd.schemas import nodes
from tests.eventually import eventually
from tests.objects import an_object
from tests.policy.examples import GONE, changed
from tests.policy.test_field_releases import EXAMPLES, FIRST, first_definitions, outermost
from tests.server.serving import readiness
from tests.wording import mentions
from webhook import names
from webhook.cli import fairlead
from webhook.crd.definition import KEEPS_UNKNOWN
from webhook.errors import ClusterError
from webhook.policy.crd.definitions import RESOURCES, custom_resource_definitions
from webhook.policy.findings import parse_path
from webhook.sandbox.api import definitions
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.fairlead import SandboxController, Webhook, start_controller
from webhook.sandbox.kubectl import Kubectl

Json = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = RESOURCES[names.POLICY_KIND]
OWN = custom_resource_definitions()[names.POLICY_KIND]
# Fields that the definition sets.
SET = ("enforcement", "priority")
CONTROLLER = "older-definitions"
OPTIONS = ("--no-leader-election", "--policy-status-interval", "0.4")
# Narrowed by a field that the older definition lacks.
NARROW = an_object(
    names.API_VERSION,
    names.POLICY_KIND,
    "narrow",
    {"rollout": {"namespaces": ["pilot"]}, "overrides": {"nodeSelector": {"pool": "a"}}},
)
DROPPED = "it lacks spec.rollout, and the API server drops that"


def older(*, prunes: bool) -> Json:
    """The definition of policies without `rollout`; `prunes`: as before definitions kept fields."""
    whole = copy.deepcopy(OWN)
    schema = whole["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    spec = schema["properties"]["spec"]
    del spec["properties"]["rollout"]
    rules = spec["x-kubernetes-validations"]
    spec["x-kubernetes-validations"] = [each for each in rules if "rollout" not in each["rule"]]
    if prunes:
        for at, node in nodes(schema):
            if at != ".status":
                node.pop(KEEPS_UNKNOWN, None)
    return whole


class Scene:
    """A cluster with the policy in force, a webhook and a controller."""

    def __init__(
        self, plane: ControlPlane, kubectl: Kubectl, running: Running, controller: SandboxController
    ) -> None:
        self.plane = plane
        self.kubectl = kubectl
        self.running = running
        self.controller = controller

    def define(self, definition: Json) -> None:
        """Replace the definition of policies, as a helm rollback does, and wait until it serves."""
        replace_definition(self.plane, NAME, definition)

    def read(self) -> Json:
        """The policy as the API server serves it; empty while it exchanges the definition."""
        status, found = self.plane.api.call("GET", path(names.PLACEMENT_POLICIES, "narrow"))
        return found if status == 200 else {"spec": {}}

    def stored(self) -> Json:
        """The policy as it is in etcd."""
        key = f"/registry/{names.GROUP}/{names.PLACEMENT_POLICIES}/narrow"
        (entry,) = etcd.read(self.plane, key, f"{key}0", limit=1)
        found: Json = json.loads(base64.b64decode(entry["value"]))
        return found

    def is_narrow(self) -> bool:
        """Whether a pod of the pilot is placed, and one of another namespace is not."""
        return (self.pool("pilot"), self.pool("other")) == ("a", None)

    def pool(self, namespace: str) -> object:
        """The pool that a pod of a run gets in a namespace."""
        container = {"name": "main", "image": "example.invalid/none"}
        metadata = {"name": "p", "labels": {names.RUN: "r"}}
        pod = an_object("v1", "Pod", metadata, {"containers": [container]})
        where = f"{path('pods', namespace=namespace)}?dryRun=All"
        status, answer = self.plane.api.call("POST", where, pod)
        assert status == 201, answer
        return (answer["spec"].get("nodeSelector") or {}).get("pool")

    def outdated(self) -> float:
        """The gauge of the definition of policies."""
        return metric(self.controller.health_port, "fairlead_definition_outdated", definition=NAME)

    def serves(self, *parts: str) -> bool:
        """Whether the reason of the webhook's policies has all of these parts."""
        reason = self.running.readiness()["policies"]["reason"]
        return all(part in reason for part in parts)

    def told(self, condition: str) -> str:
        """What the controller says."""
        found = readiness(self.controller.health_port)[1]["conditions"][condition]
        return str(found["reason"])

    def doctor(self) -> str:
        """What `fairlead doctor` says of the definitions."""
        options = ("--kubeconfig", str(self.plane.kubeconfig), "--check", "definitions")
        result = CliRunner().invoke(fairlead, ["doctor", *options], catch_exceptions=False)
        return " ".join(result.output.split())

    def apply(self, document: Json, *flags: str) -> tuple[int, str]:
        """Exit code and stderr of `kubectl apply` without its own check of fields."""
        flags = ("--validate=false", *flags)
        done = self.kubectl.run("apply", *flags, "-f", "-", stdin=json.dumps(document))
        return done.returncode, done.stderr


@pytest.fixture(scope="module")
def plane(start_module_plane: StartControlPlane) -> ControlPlane:
    """A control plane of the module's own: its definitions are exchanged."""
    started = start_module_plane(Settings(definitions=definitions()))
    for name in ("pilot", "other", names.NAMESPACE):
        started.create_namespace(name)
    return started


@pytest.fixture
def scene(plane: ControlPlane, kubectl_for: Callable[[ControlPlane], Kubectl]) -> Iterator[Scene]:
    """The policy is in force, and its status is written; the definition is restored afterwards."""
    options = (*OPTIONS, "--lease-namespace", names.NAMESPACE)
    controller = start_controller(plane, name=CONTROLLER, options=options)
    with serving_objects(plane) as running:
        played = Scene(plane, kubectl_for(plane), running, controller)
        try:
            assert played.apply(NARROW) == (0, "")
            eventually("it is in force", played.is_narrow)
            eventually("its status is written", lambda: played.read().get("status"))
            yield played
        finally:
            played.define(OWN)
            eventually("it is whole", lambda: "rollout" in played.read()["spec"])
    plane.stop_component(CONTROLLER)


def test_an_older_definition_drops_nothing_and_is_reported(scene: Scene) -> None:
    """As after a rollback of the definitions alone to a release that keeps unknown fields."""
    eventually("all is well", lambda: scene.outdated() == 0)
    assert "No problem found" in scene.doctor()
    scene.define(older(prunes=False))
    eventually("the gauge tells", lambda: scene.outdated() == 1, budget=60)
    mentions(scene.told("definitions"), "lacks spec.rollout, which is stored without its rules")
    mentions(scene.doctor(), f"{NAME} is older", "lacks spec.rollout", "fairlead install")
    # It does not know the field, and a write of spec and status keeps it.
    assert scene.apply({**NARROW, "spec": {**NARROW["spec"], "priority": 7}}) == (0, "")
    generation = scene.read()["metadata"]["generation"]
    eventually(
        "its status is written",
        lambda: scene.read()["status"]["observedGeneration"] == generation,
    )
    assert scene.stored()["spec"]["rollout"] == NARROW["spec"]["rollout"]
    assert scene.is_narrow()


def test_a_definition_that_drops_a_field_widens_no_policy_and_stores_nothing(
    scene: Scene, tmp_path: Path
) -> None:
    """As of before definitions kept unknown fields: until the definition is back, nothing moves."""
    scene.define(older(prunes=True))
    eventually("the field is dropped", lambda: scene.read()["spec"].keys() == {"overrides", *SET})
    eventually("the webhook tells", lambda: scene.serves("newer refused", DROPPED), budget=60)
    eventually("the controller tells", lambda: DROPPED in scene.told("policy-status"), budget=60)
    eventually("the gauge tells", lambda: scene.outdated() == 1, budget=60)
    mentions(scene.doctor(), "error", DROPPED)
    for words in (
        (
            "policy",
            "list",
        ),
        ("check", "cluster"),
        ("policy", "exceptions"),
    ):
        options = ("--kubeconfig", str(scene.plane.kubeconfig))
        done = CliRunner().invoke(fairlead, [*words, *options])
        assert done.exit_code != 0, done.output
        mentions(f"{done.output}{done.exception}", DROPPED)
    assert scene.is_narrow()
    # A label would store the policy without the field, and so would a policy beside it.
    for flags in (("label", "pp", "narrow", "a=b"), ("annotate", "pp", "narrow", "a=b")):
        mentions(scene.kubectl.run(*flags).stderr, "denied the request", DROPPED)
    code, said = scene.apply(an_object(names.API_VERSION, names.POLICY_KIND, "new", NARROW["spec"]))
    assert code == 1
    mentions(said, DROPPED, "kubectl apply -f -")
    # A replica that starts has no last good set.
    kubeconfig = str(scene.plane.kubeconfig)
    with served(
        tmp_path,
        *("--grace", "0"),
        policies=("--policies-from-cluster",),
        cluster=("--kubeconfig", kubeconfig),
    ) as replica:
        eventually(
            "it tells", lambda: DROPPED in replica.readiness()[1]["policies"]["reason"], budget=60
        )
        assert replica.readiness()[0] == 503
        assert ask(replica.connect(), review(namespace="other"))[0].status == 503
        assert scene.stored()["spec"]["rollout"] == NARROW["spec"]["rollout"]

        scene.define(OWN)
        eventually("the replica is ready", lambda: replica.readiness()[0] == 200, budget=60)
    eventually("it is taken", lambda: not scene.serves("newer refused"), budget=60)
    eventually("the gauge tells", lambda: scene.outdated() == 0, budget=60)
    assert scene.read()["spec"]["rollout"] == NARROW["spec"]["rollout"]
    assert scene.is_narrow()
    assert scene.kubectl.run("label", "pp", "narrow", "a=b").returncode == 0
    scene.kubectl("patch", "pp", "narrow", "--type=merge", "-p", '{"spec":{"priority":7}}')
    eventually("its status is written", lambda: scene.read()["status"]["observedGeneration"] == 2)
    assert scene.stored()["spec"]["rollout"] == NARROW["spec"]["rollout"]


def test_a_field_that_this_version_does_not_know_is_refused_by_name(scene: Scene) -> None:
    """By the webhook at every depth, since the API server keeps it; not without the webhook."""
    later = {**NARROW["spec"], "later": 1}
    later["match"] = {"roles": ["worker"], "laterSelector": {"a": "b"}}
    document = an_object(names.API_VERSION, names.POLICY_KIND, "later", later)
    for flags in ((), ("--server-side",)):
        code, said = scene.apply(document, *flags)
        assert code == 1
        mentions(said, "spec.later: there is no such field", "spec.match.laterSelector: there")
    configuration = path("validatingwebhookconfigurations", scene.running.webhook.name)
    entries = scene.plane.api.get(configuration)["webhooks"]
    for entry in entries:
        entry["clientConfig"]["url"] = "https://127.0.0.1:1/validate"
    scene.plane.api.patch(configuration, {"webhooks": entries})
    away = 'failed calling webhook "policies.fairlead.dev"'
    eventually("it is refused unjudged", lambda: away in scene.apply(document)[1])


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        (names.CLASS_KIND, {"nodes": [{"labels": {"a": "b"}, "later": 1}]}, "spec.nodes[0].later"),
        (
            names.POLICY_KIND,
            {"match": {"later": ["x"]}, "overrides": {"nodeSelector": {"pool": "b"}}},
            "spec.match.later",
        ),
    ],
)
def test_an_object_of_a_later_version_keeps_a_replica_that_starts_from_serving(
    scene: Scene, tmp_path: Path, kind: str, spec: Json, field: str
) -> None:
    """One field may narrow all: the last good set serves on, and who has none refuses pods."""
    stored_unjudged(scene.plane, scene.running.webhook, kind, spec)
    eventually("it is refused", lambda: scene.serves("newer refused", field))
    assert scene.is_narrow()
    with served(
        tmp_path,
        *("--grace", "0"),
        policies=("--policies-from-cluster",),
        cluster=("--kubeconfig", str(scene.plane.kubeconfig)),
    ) as replica:
        eventually("it tells", lambda: field in replica.readiness()[1]["policies"]["reason"])
        assert replica.readiness()[0] == 503
        assert ask(replica.connect(), review(namespace="other"))[0].status == 503
        scene.plane.api.call("DELETE", path(names.POLICY_RESOURCES[kind], "later"))
        eventually("the replica is ready", lambda: replica.readiness()[0] == 200)


def test_programs_that_are_older_than_the_definitions_say_so_of_a_set_that_may_be_served(
    scene: Scene,
) -> None:
    """A command answers nothing, and the controller calls no policy invalid."""
    newer = copy.deepcopy(OWN)
    schema = newer["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["later"] = {"type": "integer"}
    scene.define(newer)
    spec = {"later": 1, "match": {"namespaces": ["pilot"]}, **NARROW["spec"]}
    stored_unjudged(scene.plane, scene.running.webhook, names.POLICY_KIND, spec)
    where = ("--kubeconfig", str(scene.plane.kubeconfig))
    for words in (("policy", "list"), ("check", "cluster"), ("policy", "exceptions")):
        done = CliRunner().invoke(fairlead, [*words, *where])
        assert done.exit_code == 2 or isinstance(done.exception, ClusterError), done.output
        said = f"{done.output}{done.exception}"
        mentions(said, "is older than the cluster", "placementpolicies/later has spec.later")
        assert "do not compile" not in said

    def accepted(name: str) -> tuple[str, str]:
        found = scene.plane.api.get(path(names.PLACEMENT_POLICIES, name)).get("status", {})
        by_type = {each["type"]: each for each in found.get("conditions", ())}
        condition = by_type.get("Accepted", {})
        return condition.get("status", ""), condition.get("reason", "")

    later = ("Unknown", "OlderController")
    eventually("the controller says so", lambda: accepted("later") == later, budget=90)
    assert accepted("narrow") == ("True", "Accepted")
    assert scene.is_narrow()
    scene.plane.api.call("DELETE", path(names.PLACEMENT_POLICIES, "later"))


def test_what_is_stored_before_a_rollback_reads_the_same_after_it(
    plane: ControlPlane, kubectl_for: Callable[[ControlPlane], Kubectl]
) -> None:
    """Played with the definitions of the first release, which drop what they do not know."""
    kubectl, stored = kubectl_for(plane), list[Json]()

    def apply(document: Json) -> str:
        return kubectl.run("apply", "-f", "-", stdin=json.dumps(document)).stderr

    with serving_objects(plane, "--rollback-to", FIRST):
        for document in [each for each in EXAMPLES if each["kind"] != names.SOURCE_KIND]:
            if fields := outermost(document):
                mentions(apply(document), *fields, f"release {FIRST}, to which")
            for field in fields:
                document = changed(document, parse_path(field), GONE)
            assert "denied the request" not in apply(document)
            stored.append(document)
        paths = [path(names.POLICY_RESOURCES[x["kind"]], x["metadata"]["name"]) for x in stored]
        before = [plane.api.get(each)["spec"] for each in paths]
        try:
            for kind, definition in first_definitions().items():
                if kind in RESOURCES:
                    replace_definition(plane, RESOURCES[kind], definition)
            for place, spec in zip(paths, before, strict=True):
                eventually("it reads the same", lambda: plane.api.call("GET", place)[0] == 200)  # noqa: B023
                assert plane.api.get(place)["spec"] == spec
        finally:
            for kind, definition in custom_resource_definitions().items():
                replace_definition(plane, RESOURCES[kind], definition)


def replace_definition(plane: ControlPlane, name: str, definition: Json) -> None:
    """Put a definition in the place of the cluster's."""
    found = plane.api.get(f"{CRDS}/{name}")
    body = {**definition, "metadata": {**found["metadata"], **definition["metadata"]}}
    status, answer = plane.api.call("PUT", f"{CRDS}/{name}", body)
    assert status == 200, answer


def stored_unjudged(plane: ControlPlane, webhook: Webhook, kind: str, spec: Json) -> None:
    """Store an object as a later version would, which knows its fields."""
    configuration = path("validatingwebhookconfigurations", webhook.name)
    plane.api.call("DELETE", configuration)
    document = an_object(names.API_VERSION, kind, "later", spec)
    eventually(
        "it is stored",
        lambda: plane.api.call("POST", path(names.POLICY_RESOURCES[kind]), document)[0] == 201,
    )
