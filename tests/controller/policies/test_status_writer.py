"""Statuses are written when they differ: what is urgent at once, the rest slowly, counts seldom."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy

import pytest

from tests.controller.policies.memory import Cluster, raw_policy
from tests.controller.runs import refused
from tests.kube import virtual_time
from webhook import names
from webhook.controller.policies.status_writer import PACES, SPACING, StatusWriter, stored
from webhook.crd.conditions import ConditionUpdate, update_conditions
from webhook.errors import ClusterError, NotLeading
from webhook.judgement.reporting.statuses import Due, Urgency
from webhook.policy.status_model import PolicyStatus

pytestmark = pytest.mark.virtual_time

EARLIER = "2026-11-21T20:00:00Z"


class Wanted:
    """What statuses ought to be, as a test sets it: how many pods each has."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.pods: dict[str, int] = {}
        self.urgency: Urgency = "now"
        self.looks = 0

    def due(self) -> Sequence[Due]:
        found = []
        self.looks += 1
        for each in self.cluster.objects().values():
            status = PolicyStatus(pods_decided=self.pods.get(each.observed.name, 0), since=EARLIER)
            if status != each.observed.status:
                found.append(Due(each.observed, status, self.urgency))
        return found


@asynccontextmanager
async def writing(cluster: Cluster) -> AsyncIterator[tuple[StatusWriter, Wanted]]:
    wanted = Wanted(cluster)
    writer = StatusWriter(
        cluster.writer, cluster.watched, wanted.due, interval=60.0, clock=virtual_time.now
    )
    task = asyncio.create_task(writer.run())
    yield writer, wanted
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_what_does_not_differ_is_never_written() -> None:
    cluster = Cluster(raw_policy("a"))

    async with writing(cluster) as (writer, _):
        await asyncio.sleep(1)
        for _again in range(10):
            writer.wake()
            await asyncio.sleep(100)

    assert cluster.writes == ["a"]


async def test_a_burst_of_writes_has_all_objects_looked_at_once_it_is_judged() -> None:
    """Not at each write: a look goes over all objects."""
    cluster = Cluster(raw_policy("a"))

    async with writing(cluster) as (writer, wanted):
        await asyncio.sleep(1)
        looks = wanted.looks
        for at in range(20):
            cluster.put(raw_policy(f"b{at}"))
            await asyncio.sleep(1)
        assert wanted.looks == looks
        writer.wake()
        await asyncio.sleep(1)

    assert len(cluster.writes) == 21


async def test_counts_are_written_once_a_minute() -> None:
    cluster = Cluster(raw_policy("a"))

    async with writing(cluster) as (writer, wanted):
        await asyncio.sleep(1)
        wanted.urgency = "counts"
        for second in range(300):
            wanted.pods["a"] = second
            writer.wake()
            await asyncio.sleep(1)

    assert len(cluster.writes) == 1 + 5


async def test_what_is_shared_is_written_slowly_and_what_is_urgent_overtakes_it() -> None:
    """One edit changes the hash that every status shows."""
    cluster = Cluster(*(raw_policy(f"p{at:03}") for at in range(100)))

    async with writing(cluster) as (writer, wanted):
        await asyncio.sleep(100 / PACES["now"] + 1)
        assert len(cluster.writes) == 100
        cluster.writes.clear()
        wanted.urgency = "soon"
        wanted.pods = dict.fromkeys(cluster.raw, 1)
        writer.wake()
        await asyncio.sleep(2)
        assert len(cluster.writes) <= 2 * PACES["soon"] + 1
        wanted.urgency = "now"
        writer.wake()
        await asyncio.sleep(100 / PACES["now"] + 1)

    assert sorted(cluster.writes) == sorted(cluster.raw)


async def test_a_conflicting_status_writer_causes_no_tight_loop() -> None:
    """What they write is put right, twice a second at most."""
    cluster = Cluster(raw_policy("a"))

    async with writing(cluster) as (_, wanted):
        wanted.pods["a"] = 7
        for _again in range(200):
            cluster.version += 1
            cluster.put(raw_policy("a", version=cluster.version, status={"podsDecided": 1}))
            await asyncio.sleep(0.01)

    assert 2 <= len(cluster.writes) <= 2 / SPACING + 2


@pytest.mark.parametrize("refusal", [refused(404, "NotFound"), refused(409, "Conflict")])
async def test_an_object_that_changed_or_was_deleted_meanwhile_is_not_an_error(
    refusal: ClusterError,
) -> None:
    """The watch tells of it; the others are written."""
    cluster = Cluster(raw_policy("a"), raw_policy("b"))
    cluster.refusals["a"] = refusal

    async with writing(cluster) as (writer, _):
        await asyncio.sleep(2)
        assert writer.trouble == ""
        assert "status" in cluster.raw["b"]
        cluster.refusals.clear()
        newer = deepcopy(cluster.raw["a"])
        newer["metadata"]["resourceVersion"] = "6"
        cluster.put(newer)
        await asyncio.sleep(2)
        assert "status" in cluster.raw["a"]


async def test_one_object_that_is_refused_does_not_keep_the_others() -> None:
    cluster = Cluster(raw_policy("a"), raw_policy("b"))
    cluster.refusals["a"] = refused(403, "Forbidden", "a may not be written")

    async with writing(cluster) as (writer, _):
        await asyncio.sleep(10)
        assert "a may not be written" in writer.trouble
        assert "status" in cluster.raw["b"]
        cluster.refusals.clear()
        await asyncio.sleep(60)
        assert writer.trouble == ""
        assert "status" in cluster.raw["a"]


@pytest.mark.parametrize("refusal", [refused(503, "ServiceUnavailable"), ClusterError("no route")])
async def test_an_api_server_in_trouble_is_left_alone_for_a_while(refusal: ClusterError) -> None:
    """Everything is written once it is back."""
    cluster = Cluster(*(raw_policy(f"p{at}") for at in range(20)))
    cluster.refusals = dict.fromkeys(cluster.raw, refusal)

    async with writing(cluster) as (writer, _):
        await asyncio.sleep(60)
        assert writer.trouble
        assert len(cluster.writes) < 20
        cluster.refusals.clear()
        await asyncio.sleep(60)
        assert all("status" in each for each in cluster.raw.values())


async def test_who_does_not_lead_any_more_says_nothing() -> None:
    """Whoever leads now writes what there is to write."""
    cluster = Cluster(raw_policy("a"))
    cluster.refusals["a"] = NotLeading("another may hold the lease")

    async with writing(cluster) as (writer, _):
        await asyncio.sleep(10)
        assert writer.trouble == ""

    assert "status" not in cluster.raw["a"]


async def test_the_last_status_is_written_at_the_end() -> None:
    """Once, what is urgent first; what the API server refuses of one keeps no other."""
    cluster = Cluster(raw_policy("a"), raw_policy("b"), raw_policy("c"))

    wanted = Wanted(cluster)
    writer = StatusWriter(cluster.writer, cluster.watched, wanted.due, clock=virtual_time.now)
    await writer.write_once()
    wanted.urgency, wanted.pods = "counts", dict.fromkeys("abc", 7)
    cluster.refusals["a"] = refused(403, "Forbidden", "a may not be written")
    await writer.write_once()
    cluster.refusals = dict.fromkeys("abc", ClusterError("no route"))
    wanted.pods = dict.fromkeys("abc", 8)
    await writer.write_once()
    assert cluster.writes == [*"abc", *"abc", "a"]
    counted = [cluster.raw[name]["status"]["podsDecided"] for name in "abc"]
    assert counted == [0, 7, 7]


def test_the_text_is_what_the_webhook_reads_and_the_status_is_apart() -> None:
    """A status that is written makes no other policy."""
    before = stored(names.PLACEMENT_POLICIES, raw_policy("a"))
    raw = raw_policy("a", version=6, status={"podsDecided": 3, "later": "unknown"})
    after = stored(names.PLACEMENT_POLICIES, raw)
    assert before.observed.text == after.observed.text
    assert set(json.loads(after.observed.text)) == {"apiVersion", "kind", "metadata", "spec"}
    assert after.observed.status == PolicyStatus.read({"podsDecided": 3, "later": "unknown"})
    assert after.observed.version == ("uid-a", 1)
    assert after.version == "6"
    assert after.path == "/apis/fairlead.dev/v1alpha1/placementpolicies/a/status"


async def test_no_status_is_written_while_the_objects_may_lack_fields() -> None:
    """The reason is reported, and the write follows once they are whole."""
    cluster = Cluster(raw_policy("a"))
    cluster.doubtful = "the definition lacks spec.rollout"
    async with writing(cluster) as (writer, wanted):
        wanted.pods["a"] = 1
        await asyncio.sleep(30)
        assert (cluster.writes, writer.trouble) == ([], cluster.doubtful)
        await writer.write_once()
        assert cluster.writes == []
        cluster.doubtful = ""
        await asyncio.sleep(90)
        assert (cluster.writes, writer.trouble) == (["a"], "")


async def test_a_status_is_not_written_to_a_spec_that_reads_otherwise_now() -> None:
    """A definition that drops a field between the check and the write: no version tells of it."""
    cluster = Cluster(raw_policy("a", rollout={"namespaces": ["pilot"]}))
    (known,) = cluster.objects().values()
    due = Due(known.observed, PolicyStatus(pods_decided=1), "now")
    writer = StatusWriter(cluster.writer, cluster.watched, lambda: [due], clock=virtual_time.now)
    cluster.reads_as = raw_policy("a")
    await writer.write_once()
    assert cluster.writes == ["a"]
    assert "status" not in cluster.raw["a"]


def test_a_value_of_a_status_that_cannot_be_read_is_written_again_and_leaves_the_others() -> None:
    """Whoever wrote it, the counts go on."""
    odd = {"conditions": "many", "since": "yesterday", "podsDecided": 7}
    found = stored(names.PLACEMENT_POLICIES, raw_policy("a", status=odd))
    assert found.observed.status == PolicyStatus(pods_decided=7)


def test_a_status_keeps_what_another_version_wrote_beside_it() -> None:
    """The patch has it as it was, in the status and in its conditions."""
    condition = {"type": "Accepted", "status": "Perhaps", "lastTransitionTime": EARLIER, "by": 1}
    odd = {"conditions": [condition], "later": {"field": [1]}}
    found = stored(names.PLACEMENT_POLICIES, raw_policy("a", status=odd)).observed.status
    after = update_conditions(
        found.conditions, [ConditionUpdate("Accepted", "True", "Compiles")], 2, EARLIER
    )
    written = found.model_copy(update={"conditions": after}).model_dump(by_alias=True)
    assert written["later"] == {"field": [1]}
    assert (written["conditions"][0]["by"], written["conditions"][0]["status"]) == (1, "True")
