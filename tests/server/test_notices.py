"""Events on workloads: one for each reason and hour, whoever writes it, and never in the way."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from webhook.decision.notice import NO_NODE, REJECTED, Notice, Owner
from webhook.errors import ClusterError
from webhook.kube.events import MESSAGE_MAX_CHARACTERS
from webhook.placement.owner_selector import SELECTING
from webhook.server.notices import BURST, CREATED, EVENT_INTERVAL_SECONDS, QUEUE_LENGTH, Notices

Json = dict[str, Any]
NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


def notice(
    uid: str = "u1", *, reason: str = REJECTED, namespace: str = "ml", name: str = "train"
) -> Notice:
    owner = Owner("batch/v1", "Job", name, uid)
    return Notice(namespace, owner, reason, "policy p: no", ("Job", name), "")


class Server:
    """Where Events are created: one name only once, as the API server does."""

    def __init__(self) -> None:
        self.events: dict[str, Json] = {}
        self.error: Exception | None = None
        # Path to object, and what was asked for.
        self.objects: dict[str, Json] = {}
        self.read: list[str] = []

    async def get(self, path: str, *, accept: str = "") -> Json:
        """Return the metadata of an object, if somebody put it here."""
        assert "PartialObjectMetadata" in accept
        self.read.append(path)
        if path not in self.objects:
            raise ClusterError("no", status=404, reason="NotFound")
        return self.objects[path]

    async def create(self, path: str, body: Mapping[str, Any]) -> Json:
        if self.error:
            raise self.error
        key = f"{path}/{body['metadata']['name']}"
        if key in self.events:
            raise ClusterError("taken", status=409, reason="AlreadyExists")
        self.events[key] = dict(body)
        return self.events[key]


class Replica:
    """One webhook's notices; `now` and `clock` may be set, `outcomes` says what became of each."""

    def __init__(self, server: Server) -> None:
        self.now = NOON
        self.clock = 5.0
        self.outcomes: list[str] = []
        self.notices = Notices(
            cast(Any, server), self.outcomes.append, now=lambda: self.now, clock=lambda: self.clock
        )

    async def tells(self, *told: Notice) -> None:
        """Tell these, and wait until all of them are written or lost."""
        for each in told:
            self.notices.submit(each)
        task = asyncio.create_task(self.notices.run())
        await self.notices.flushed()
        task.cancel()


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def replica(server: Server) -> Replica:
    return Replica(server)


async def test_an_event_is_found_by_the_workload_that_it_is_about(
    server: Server, replica: Replica
) -> None:
    """`kubectl describe` asks by kind, name and uid."""
    await replica.tells(notice())
    ((path, event),) = server.events.items()
    assert path == f"/api/v1/namespaces/ml/events/{event['metadata']['name']}"
    assert event == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": event["metadata"]["name"], "namespace": "ml"},
        "involvedObject": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "namespace": "ml",
            "name": "train",
            "uid": "u1",
        },
        "type": "Warning",
        "reason": "PlacementRejected",
        "message": "policy p: no. Change the pod template of Job train.",
        "source": {"component": "fairlead-webhook"},
        "reportingComponent": "fairlead-webhook",
        "reportingInstance": "fairlead-webhook",
        "count": 1,
        "firstTimestamp": "2026-01-02T12:00:00Z",
        "lastTimestamp": "2026-01-02T12:00:00Z",
    }


async def test_the_same_is_reported_once_an_hour(server: Server, replica: Replica) -> None:
    """However often a controller tries."""
    await replica.tells(notice(), notice())
    replica.now = NOON + timedelta(minutes=59)
    await replica.tells(notice())
    replica.now = NOON + timedelta(hours=1)
    await replica.tells(notice())
    assert len(server.events) == 2
    assert sorted(replica.outcomes) == ["repeated", "repeated", "written", "written"]


async def test_replicas_write_one_event(server: Server, replica: Replica) -> None:
    """And a process that has started again writes none of what was written before."""
    await replica.tells(notice())
    other = Replica(server)
    await other.tells(notice())
    assert other.outcomes == ["repeated"]
    assert len(server.events) == 1


async def test_other_reasons_and_other_workloads_have_events_of_their_own(
    server: Server, replica: Replica
) -> None:
    told = notice(), notice(reason=NO_NODE), notice("u2"), notice("u3", namespace="other")
    await replica.tells(*told)
    assert len(server.events) == 4
    assert replica.outcomes == ["written"] * 4


async def test_what_could_not_be_written_is_tried_at_the_next_pod(
    server: Server, replica: Replica
) -> None:
    """The API server may be away for a moment, and controllers try again."""
    server.error = ClusterError("away", status=503)
    await replica.tells(notice())
    server.error = None
    await replica.tells(notice())
    assert replica.outcomes == ["failed", "written"]
    assert len(server.events) == 1


async def test_a_bug_stops_nothing(server: Server, replica: Replica) -> None:
    """The process decides on pods, which matters more."""
    server.error = ValueError("a bug")
    await replica.tells(notice(), notice("u2"))
    assert replica.outcomes == ["failed", "failed"]


async def test_one_namespace_cannot_take_all_events(server: Server, replica: Replica) -> None:
    """Whoever makes Jobs by the thousand has some Events at once, then one at a time."""
    await replica.tells(*(notice(f"u{number}") for number in range(BURST + 5)))
    assert replica.outcomes.count("dropped") == 5
    await replica.tells(notice("v", namespace="other"))
    assert replica.outcomes[-1] == "written"
    replica.clock += EVENT_INTERVAL_SECONDS + 0.1
    await replica.tells(notice("w"))
    assert replica.outcomes[-1] == "written"
    assert len(server.events) == BURST + 2


async def test_a_clock_that_is_set_back_silences_no_event(replica: Replica) -> None:
    """A machine that woke up with a wrong time would else say nothing until that has come."""
    replica.now = NOON + timedelta(days=900)
    await replica.tells(notice())
    replica.now = NOON
    await replica.tells(notice())
    assert replica.outcomes == ["written", "written"]


async def test_no_caller_waits_for_an_unreachable_api_server(replica: Replica) -> None:
    """What comes while too much waits is dropped, and counted."""
    for number in range(QUEUE_LENGTH + 3):
        replica.notices.submit(notice(f"u{number}", namespace=f"n{number}"))
    assert replica.outcomes == ["dropped"] * 3


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("train", "train."),
        ("a" * 253, "a" * 200 + "."),
        ("a" * 199 + "-b", "a" * 199 + "."),
        ("Team:Train", "workload."),
        ("a..b", "workload."),
        ("a.-b", "workload."),
        ("a.b-c", "a.b-c."),
        ("/x", "workload."),
    ],
)
async def test_an_event_s_name_is_one_whatever_its_owner_is_called(
    server: Server, replica: Replica, name: str, begin: str
) -> None:
    """An owner reference may say anything."""
    await replica.tells(notice(name=name))
    (event,) = server.events.values()
    assert event["metadata"]["name"].startswith(begin)
    assert len(event["metadata"]["name"]) <= 253
    assert event["involvedObject"]["name"] == name


async def test_a_long_message_is_cut(server: Server, replica: Replica) -> None:
    """The API server refuses more than 1,024 characters."""
    told = notice()._replace(what="x" * 5000)
    await replica.tells(told)
    (event,) = server.events.values()
    assert len(event["message"]) == MESSAGE_MAX_CHARACTERS


def created_by(uid: str, kind: str, name: str, owner_uid: str, api: str = "batch/v1") -> Json:
    """The metadata of an object that another one controls."""
    reference = {"apiVersion": api, "kind": kind, "name": name, "uid": owner_uid}
    return {"metadata": {"uid": uid, "ownerReferences": [{**reference, "controller": True}]}}


JOBS = "/apis/batch/v1/namespaces/ml/jobs"
SPARK = "sparkoperator.k8s.io/v1beta2"
APPLICATION = f"/apis/{SPARK}/namespaces/ml/sparkapplications/train"


async def test_an_event_is_on_the_object_that_created_the_owner(
    server: Server, replica: Replica
) -> None:
    """A JobSet is what its author wrote; its Jobs have one Event together, which names it."""
    jobset = ("JobSet", "train", "top", "jobset.x-k8s.io/v1alpha2")
    for n in (0, 1):
        server.objects[f"{JOBS}/train-{n}"] = created_by(f"u{n}", *jobset)
    await replica.tells(notice("u0", name="train-0"), notice("u1", name="train-1"))
    (event,) = server.events.values()
    about = event["involvedObject"]
    assert (about["apiVersion"], about["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
    assert (about["name"], about["uid"]) == ("train", "top")
    assert "pod template of JobSet train" in event["message"]
    assert sorted(replica.outcomes) == ["repeated", "written"]


async def test_an_owner_that_cannot_be_read_has_the_event_itself(
    server: Server, replica: Replica
) -> None:
    await replica.tells(notice())
    assert server.read == [f"{JOBS}/train"]
    (event,) = server.events.values()
    assert event["involvedObject"]["kind"] == "Job"


async def test_an_object_of_the_owner_s_name_that_is_another_one_is_not_followed(
    server: Server, replica: Replica
) -> None:
    """A Job that was deleted and created again."""
    server.objects[f"{JOBS}/train"] = created_by("another", "CronJob", "nightly", "top")
    await replica.tells(notice())
    (event,) = server.events.values()
    assert event["involvedObject"]["kind"] == "Job"


@pytest.mark.parametrize(
    "owner",
    [
        Owner("batch/v1/../../v1", "Job", "train", "u"),
        Owner("batch/v1", "Job", "a/../../b", "u"),
        Owner("batch/v1", "Job", "a?watch=1", "u"),
        Owner("v1", "Secret", "keys", "u"),
        Owner("v1", "Pod", "train", "u"),
        Owner("ray.io/v1/../../v1", "RayCluster", "train", "u"),
    ],
)
async def test_only_known_kinds_are_read_whatever_a_pod_refers_to(
    server: Server, replica: Replica, owner: Owner
) -> None:
    await replica.tells(notice()._replace(owner=owner))
    assert server.read == []
    assert len(server.events) == 1


async def test_owners_are_followed_for_five_steps(server: Server, replica: Replica) -> None:
    server.objects[f"{JOBS}/train"] = created_by("u1", "Job", "train", "u1")
    await replica.tells(notice())
    assert len(server.read) == 5
    assert len(server.events) == 1


async def test_an_object_that_a_label_names_has_the_event_of_a_pod_without_an_owner(
    server: Server, replica: Replica
) -> None:
    """Nobody owns the driver that spark-submit creates."""
    named = Owner(SPARK, "SparkApplication", "train", "")
    server.objects[APPLICATION] = {"metadata": {"uid": "app"}}
    await replica.tells(notice()._replace(owner=named, named=named))
    (event,) = server.events.values()
    about = event["involvedObject"]
    assert (about["kind"], about["name"], about["uid"]) == ("SparkApplication", "train", "app")
    assert replica.outcomes == ["written"]


async def test_an_object_that_a_label_names_has_the_event_of_a_pod_that_a_pod_owns(
    server: Server, replica: Replica
) -> None:
    """The driver owns the executors, and the Event has one message for all of them."""
    named = Owner(SPARK, "SparkApplication", "train", "")
    driver = Owner("v1", "Pod", "train-driver", "d")
    server.objects[APPLICATION] = created_by("app", "ScheduledSparkApplication", "all", "top")
    await replica.tells(notice()._replace(owner=driver, named=named))
    (event,) = server.events.values()
    assert event["involvedObject"]["kind"] == "ScheduledSparkApplication"
    assert event["involvedObject"]["uid"] == "top"


async def test_no_event_is_written_if_the_object_that_a_label_names_does_not_exist(
    server: Server, replica: Replica
) -> None:
    """Anyone may write the label; the author of such a pod gets the answer itself."""
    named = Owner(SPARK, "SparkApplication", "train", "")
    await replica.tells(notice()._replace(owner=named, named=named))
    assert not server.events
    assert replica.outcomes == ["dropped"]


def test_the_webhook_may_read_exactly_the_owners_that_it_follows_or_that_select_pods() -> None:
    """A right too few puts Events on children, a right too many is one to steal."""
    documents = yaml.safe_load_all(Path("manifests/base/webhook-rights.yaml").read_text())
    (rules,) = (each["rules"] for each in documents if each["kind"] == "ClusterRole")
    given = {
        (group, resource)
        for rule in rules
        if rule["verbs"] == ["get"]
        for group in rule["apiGroups"]
        if "kubeflow.org" not in group
        for resource in rule["resources"]
    }
    owners = {**CREATED, **SELECTING}
    assert given == {(group, resource) for (group, _), resource in owners.items()}
