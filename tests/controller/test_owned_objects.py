"""What runs own, on an API server that answers in every way."""

from __future__ import annotations

import asyncio

import pytest

from tests.controller.runs import UID, Api, Json, raw_node, raw_pod, raw_run, refused, run
from webhook import names
from webhook.controller.observed_state import ObservedState
from webhook.controller.owned_objects import (
    DEPLOYMENT,
    ONE_BY_ONE,
    POD,
    RUN,
    SECRET,
    Kind,
    Objects,
)
from webhook.errors import ClusterError
from webhook.run.observed import Refusal

EXISTS = refused(409, "AlreadyExists", "exists")


class Stage:
    """Objects with caches that a list has filled."""

    def __init__(self) -> None:
        self.api = Api()
        self.known = ObservedState()
        self.known.pods.replace({}, "1")
        self.known.runs.replace({}, "1")
        self.objects = Objects(self.api.client, self.api.writer, self.known)

    def create(self, index: int = 0) -> Refusal | None:
        return asyncio.run(self.objects.create(POD, run(), raw_pod(index)))

    def delete(self, index: int = 0) -> bool:
        name = f"mnist-worker-{index}"
        return asyncio.run(self.objects.delete(POD, "lab", name, uid=f"uid-{index}"))

    def pods(self) -> list[str]:
        return sorted(self.known.pods.items())


def test_what_was_created_is_known_at_once() -> None:
    """Else the next look would create it again."""
    stage = Stage()
    assert stage.create() is None
    assert stage.pods() == ["lab/mnist-worker-0"]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (SECRET, {"framework": "jax"}),
        (DEPLOYMENT, {"framework": "jax"}),
        (POD, {"kind": "notebook", "framework": None, "replicas": None}),
    ],
)
def test_nothing_is_created_that_the_author_is_not_asked_for(kind: Kind, spec: Json) -> None:
    """The guard asks for what the table has, so a kind that is missing there shows here."""
    stage = Stage()
    with pytest.raises(RuntimeError, match=f"was asked for a {kind.name}$"):
        asyncio.run(stage.objects.create(kind, run(**spec), raw_pod(0)))
    assert stage.api.calls == []


def test_our_own_pod_that_is_there_already_is_a_success() -> None:
    """The answer to an earlier creation was lost, or another leader made it."""
    stage = Stage()
    stage.api.answers["create", "*"] = EXISTS
    stage.api.answers["get", "mnist-worker-0"] = raw_pod(0)
    assert stage.create() is None
    assert stage.pods() == ["lab/mnist-worker-0"]


def test_another_owners_pod_is_a_refusal() -> None:
    """A Run of the same name that was there before is somebody else too."""
    stage = Stage()
    stage.api.answers["create", "*"] = EXISTS
    stage.api.answers["get", "mnist-worker-0"] = raw_pod(0, run_uid="before")
    found = stage.create()
    assert found is not None
    assert (found.name, found.reason) == ("mnist-worker-0", "NameTaken")
    assert stage.pods() == []


def test_a_name_that_is_free_again_by_now_is_tried_again() -> None:
    """It is the caller who does."""
    stage = Stage()
    stage.api.answers["create", "*"] = EXISTS
    with pytest.raises(ClusterError):
        stage.create()


def test_a_refusal_is_returned_and_other_errors_are_raised() -> None:
    """One is the run's, the other the API server's."""
    stage = Stage()
    stage.api.answers["create", "*"] = refused(403, "Forbidden", "exceeded quota: small")
    assert stage.create() == Refusal("mnist-worker-0", "QuotaExceeded", "exceeded quota: small")
    for status, reason in ((None, "Timeout"), (503, ""), (409, "Conflict")):
        stage.api.answers["create", "*"] = refused(status, reason)
        with pytest.raises(ClusterError):
            stage.create()


def test_a_deletion_is_of_one_uid() -> None:
    """Another pod of the same name is not meant."""
    stage = Stage()
    stage.api.answers["delete", "*"] = raw_pod(0, version=50)
    assert stage.delete()
    assert stage.api.bodies[0]["preconditions"] == {"uid": "uid-0"}


@pytest.mark.parametrize("status", [404, 409])
def test_a_pod_that_is_gone_or_another_is_deleted_already(status: int) -> None:
    """That is what was wanted."""
    stage = Stage()
    stage.api.answers["delete", "*"] = refused(status)
    assert not stage.delete()


def test_a_pod_that_is_given_time_is_known_to_go() -> None:
    """One that has ended is gone at once: the answer is its last version."""
    stage = Stage()
    for index in range(3):
        stage.create(index)
    times: Json = {"deletionTimestamp": "2026-11-21T20:00:30Z", "deletionGracePeriodSeconds": 30}
    stage.api.answers["delete", "mnist-worker-0"] = raw_pod(0, version=200, **times)
    over: Json = {**times, "deletionGracePeriodSeconds": 0}
    stage.api.answers["delete", "mnist-worker-1"] = raw_pod(1, version=201, **over)
    held: Json = {**over, "finalizers": ["example.dev/wait"]}
    stage.api.answers["delete", "mnist-worker-2"] = raw_pod(2, version=202, **held)
    for index in range(3):
        assert stage.delete(index)
    assert stage.pods() == ["lab/mnist-worker-0", "lab/mnist-worker-2"]
    pod = stage.known.pods.get("lab/mnist-worker-0")
    assert pod is not None
    assert pod.deleted_at == "2026-11-21T20:00:00Z"


def test_a_run_is_deleted_in_the_version_that_was_looked_at() -> None:
    """Somebody may have changed its time to live meanwhile."""
    stage = Stage()
    stage.api.answers["delete", "*"] = {"kind": "Status", "status": "Success"}
    assert asyncio.run(stage.objects.delete(RUN, "lab", "mnist", uid=UID, version="5"))
    assert stage.api.bodies[0]["preconditions"] == {"uid": UID, "resourceVersion": "5"}
    assert stage.api.bodies[0]["propagationPolicy"] == "Background"


def test_a_status_that_was_written_is_known_at_once() -> None:
    """With its new version, upon which the next one is written."""
    stage = Stage()
    asyncio.run(stage.objects.write_status({**raw_run(), "status": {"phase": "Running"}}))
    stored = stage.known.runs.get("lab/mnist")
    assert stored is not None
    assert (stored.phase, stored.version) == ("Running", "101")


def look_up(stage: Stage, count: int) -> list[str]:
    pods = frozenset(f"mnist-worker-{index}" for index in range(count))
    return sorted(asyncio.run(stage.objects.get_pods(run(), pods)))


def test_a_few_pods_are_looked_up_one_by_one() -> None:
    """What is found is known, what is not ours is not found, what is absent is absent."""
    stage = Stage()
    stage.api.answers["get", "mnist-worker-1"] = raw_pod(1, version=300)
    stage.api.answers["get", "mnist-worker-2"] = raw_pod(2, run_uid="before")
    assert look_up(stage, 3) == ["mnist-worker-1"]
    assert stage.pods() == ["lab/mnist-worker-1", "lab/mnist-worker-2"]


def test_many_pods_are_looked_up_in_one_list() -> None:
    """Of all in the namespace: one whose labels were taken off is there, and no other is made."""
    stage = Stage()
    listed = [raw_pod(index, version=300) for index in (3, 90)]
    listed[0]["metadata"]["labels"] = {}
    stage.api.answers["list", "pods"] = {"items": listed}
    assert look_up(stage, ONE_BY_ONE + 1) == ["mnist-worker-3"]
    assert stage.api.calls == [("list", "pods")]


def test_a_failed_lookup_does_not_count_as_absent() -> None:
    """Else a pod would be made twice over."""
    stage = Stage()
    stage.api.answers["get", "*"] = refused(500)
    with pytest.raises(ClusterError):
        look_up(stage, 1)


def test_a_service_that_was_opened_is_known_to_be_open_at_once() -> None:
    """The label that no pod has is taken out of its selector, and nothing else."""
    stage = Stage()
    raw = {
        "metadata": {**raw_pod(0)["metadata"], "name": "mnist", "resourceVersion": "5"},
        "spec": {"selector": {names.RUN_UID: UID}},
    }
    closed = {**raw, "spec": {"selector": {names.RUN_UID: UID, names.CLOSED: "true"}}}
    services = stage.known.services
    services.replace({"lab/mnist": services.keep(closed)}, "1")
    assert stage.known.observed("lab", UID).service_closed
    stage.api.answers["patch", "mnist"] = raw
    asyncio.run(stage.objects.open_service(run(), "uid-0"))
    selector = {"selector": {names.CLOSED: None}}
    assert stage.api.bodies == [{"metadata": {"uid": "uid-0"}, "spec": selector}]
    assert stage.known.observed("lab", UID).service
    assert not stage.known.observed("lab", UID).service_closed


IMMUTABLE = 'metadata.uid: Invalid value: "uid-0": field is immutable'


@pytest.mark.parametrize(("status", "words"), [(422, IMMUTABLE), (404, "not found")])
def test_an_object_that_was_recreated_under_the_name_is_not_changed(
    status: int, words: str
) -> None:
    """It is another, perhaps another owner's; the watch tells of it."""
    stage = Stage()
    stage.api.answers["patch", "mnist"] = refused(status, "Invalid", words)
    asyncio.run(stage.objects.open_service(run(), "uid-0"))
    asyncio.run(stage.objects.scale(run(), "uid-0", 0))
    assert stage.api.named("patch") == ["mnist", "mnist"]


def test_a_change_that_is_refused_for_another_reason_is_an_error() -> None:
    """It is told, and tried again."""
    stage = Stage()
    stage.api.answers["patch", "mnist"] = refused(422, "Invalid", "spec.replicas: must be positive")
    with pytest.raises(ClusterError):
        asyncio.run(stage.objects.scale(run(), "uid-0", -1))


def test_nodes_are_read_live_and_what_is_read_is_known() -> None:
    """One that is not there is gone, and is not asked for again."""
    stage = Stage()
    nodes = stage.known.nodes
    nodes.cache.replace({}, "1")
    stage.api.answers["get", "spot-0"] = raw_node("spot-0", ready="Unknown", shut_down=True)
    read = asyncio.run(stage.objects.read_nodes(["spot-0", "spot-1"]))
    assert (read["spot-0"].trouble, read["spot-1"].trouble) == ("NodeShutdown", "NodeGone")
    known = nodes.health(["spot-0", "spot-1", "spot-2"])
    assert known is not None
    assert known == read


def test_a_failed_live_read_of_a_node_proves_nothing() -> None:
    """Neither that it is gone, nor that it is shut down."""
    stage = Stage()
    stage.api.answers["get", "spot-0"] = refused(500)
    with pytest.raises(ClusterError):
        asyncio.run(stage.objects.read_nodes(["spot-0"]))
