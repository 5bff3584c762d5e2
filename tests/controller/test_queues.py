"""Workloads of Runs in queues, where the API server says no; with Kueue: tests/operators."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from tests.controller.runs import TEMPLATE, UID, Api, Json, owner_reference, raw_run, refused
from tests.controller.test_action_executor import Counted
from tests.wording import mentions
from webhook import names
from webhook.controller.action_executor import ActionExecutor, Done
from webhook.controller.observed_state import ObservedState
from webhook.controller.owned_objects import Objects
from webhook.controller.queues import Queues, Trials
from webhook.controller.refusals import Refusals
from webhook.controller.stored_run import store
from webhook.controller.workload_executor import WorkloadExecutor
from webhook.errors import ClusterError
from webhook.kube.watches import Watches
from webhook.run.actions import (
    CheckWorkload,
    CreatePod,
    CreateWorkload,
    DeleteWorkload,
    WriteWorkload,
)
from webhook.run.observed import Observed, Refusal
from webhook.run.plan import plan
from webhook.run.queue import evict
from webhook.run.queue_state import Flavor, Queueing
from webhook.run.reading import read_run

NAME = f"run-mnist-{UID[:8]}"
MOMENT = "2026-11-29T00:00:00Z"
GROUP = {
    f"{names.KUEUE_PREFIX}podset-required-topology": "kubernetes.io/hostname",
    f"{names.KUEUE_PREFIX}podset-group-name": "all",
}
SERVED: Json = {"resources": [{"name": "workloads"}]}


def raw_workload(version: int, **status: Any) -> Json:
    """The Run's Workload as the API server keeps it."""
    return {
        "metadata": {
            "name": NAME,
            "namespace": "lab",
            "uid": "w",
            "resourceVersion": str(version),
            "ownerReferences": [owner_reference(UID)],
        },
        "spec": {"queueName": "ml", "podSets": [{"name": "worker", "count": 3}]},
        "status": status,
    }


def placed(pool: str, **stamp: Any) -> Callable[[Json], Json]:
    """Admission that puts pods into a pool."""

    def admit(pod: Json) -> Json:
        text = json.dumps({"policies": {}, "set": "a" * 16, **stamp})
        metadata = {**pod["metadata"], "annotations": {names.PLACEMENT: text}}
        selector = {"pool": pool, **pod["spec"].get("nodeSelector", {})}
        return {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeSelector": selector}}

    return admit


def with_selector(pod: Json, selector: Json) -> Json:
    return {**pod, "spec": {**pod["spec"], "nodeSelector": selector}}


class Admitting(Api):
    """An API whose admission answers dry runs, and notes the pods."""

    admit: Callable[[Json], Json] = staticmethod(placed("spot"))
    tried: list[Json]

    async def create(self, path: str, body: Mapping[str, Any], *, query: Any = None) -> Json:
        if query != {"dryRun": "All"} or ("create", NAME) in self.answers:
            return await super().create(path, body, query=query)
        self.tried.append(dict(body))
        return self.admit(dict(body))


class Stage:
    """A Run in a queue, and its Workload if one is given."""

    def __init__(self, *workloads: Json, **spec: Any) -> None:
        raw = raw_run(**spec)
        raw["metadata"]["labels"] = {names.KUEUE_QUEUE: "ml"}
        self.stored = store(raw)
        self.run = read_run(raw).valid_run()
        self.now = 100.0
        self.api, self.known = Admitting({("get", "v1beta2"): SERVED}), ObservedState()
        self.api.tried = []
        kept = {f"lab/{NAME}": self.known.workloads.keep(each) for each in workloads}
        self.known.workloads.replace({key: each for key, each in kept.items() if each}, "1")
        self.known.flavors.replace({}, "1")
        self.known.runs.replace({"lab/mnist": self.stored}, "1")
        objects = self.objects = Objects(self.api.client, self.api.writer, self.known)
        trials = Trials(self.known)

        def clock() -> float:
            return self.now

        self.queues = Queues(Watches(self.api.client), self.known, objects, trials, clock=clock)
        self.workloads = WorkloadExecutor(
            self.api.client, self.api.writer, self.known, objects, trials, clock=clock
        )
        self.queues.served = lambda: self.served
        self.served: set[str] = set()

    def queue(self) -> Json:
        """Put the Run into its queue; its Workload, as the API server has it then."""
        assert self.do(CreateWorkload("ml")) is None
        made: Json = {**self.api.bodies[-1]}
        made["metadata"] = {**made["metadata"], "uid": "w", "resourceVersion": "7"}
        self.keep(made)
        return made

    def keep(self, raw: Json, *conditions: str, **status: Any) -> None:
        """The API server has this version of the Workload, with these conditions."""
        found = [
            {"type": each, "status": "True", "reason": each, "lastTransitionTime": MOMENT}
            for each in conditions
        ]
        raw = {**raw, "status": {**status, "conditions": found}}
        self.api.answers["get", NAME] = raw
        version = str(self.api.versions)
        self.known.workloads.put(f"lab/{NAME}", self.known.workloads.keep(raw), version)

    def look(self) -> Refusal | None:
        return self.do(CheckWorkload(NAME, "w"))

    def evicted(self) -> tuple[str, str] | None:
        """By which reason and message the controller has evicted the Run."""
        for body in self.api.bodies:
            for each in (body or {}).get("status", {}).get("conditions", ()):
                if (each["type"], each["status"]) == ("Evicted", "True"):
                    return each["reason"], each["message"]
        return None

    def observe(self) -> Queueing:
        return asyncio.run(self.queues.observe(self.stored, plan(self.run)))

    def create(self, *workers: int) -> Done:
        """Replace these workers."""
        no_pauses, counts = Refusals(clock=lambda: self.now, random=Random(1)), Counted()
        memory, observed = self.known.memory, Observed(queue=self.observe())
        executor = ActionExecutor(self.objects, no_pauses, memory, counts, self.workloads)
        pods = [CreatePod("worker", index, 1) for index in workers]
        return asyncio.run(executor.carry_out(self.run, plan(self.run), observed, pods))

    def do(self, action: CreateWorkload | CheckWorkload | WriteWorkload) -> Refusal | None:
        return asyncio.run(self.workloads.carry_out(self.run, plan(self.run), action))


def test_what_would_be_rejected_takes_no_quota() -> None:
    """The dry run of a pod is rejected, and no Workload is made."""
    stage = Stage()
    stage.api.answers["create", NAME] = refused(
        403, "Forbidden", "pods is forbidden: exceeded quota: x"
    )
    found = stage.do(CreateWorkload("ml"))
    assert found is not None
    assert (found.name, found.reason) == ("mnist-worker-0", "QuotaExceeded")
    assert len(stage.api.calls) == 1


def test_a_workload_has_a_priority_in_any_case() -> None:
    """Kueue's API of pending workloads reads it without a look (newPendingWorkload, 0.17.0)."""
    stage = Stage()
    assert stage.do(CreateWorkload("ml")) is None
    assert stage.api.bodies[-1]["spec"]["priority"] == 0


def test_more_sets_of_pods_than_kueue_takes_are_named() -> None:
    """Each replica with resources of its own is one; nothing is created."""
    own = [{"index": at, "resources": {"requests": {"cpu": at + 1}}} for at in range(9)]
    stage = Stage(replicas={"worker": {"count": 12, "byIndex": own}})
    found = stage.do(CreateWorkload("ml"))
    assert found is not None
    assert found.reason == "Invalid"
    mentions(found.message, "8 sets of pods at most", "worker 0, worker 1", "worker 8", "byIndex")
    assert stage.api.calls == []


def test_pods_at_which_kueue_would_panic_have_no_workload() -> None:
    """A group of three sets of pods: resources of one replica make it a set of its own."""
    template: Json = {**TEMPLATE, "metadata": {"annotations": GROUP}}
    own = [{"index": 1, "resources": {"requests": {"cpu": 1}}}]
    stage = Stage(
        template=template,
        framework="pytorch",
        replicas={"master": {}, "worker": {"count": 2, "byIndex": own}},
    )
    stage.api.admit = lambda pod: pod
    found = stage.do(CreateWorkload("ml"))
    assert found is not None
    assert found.reason == "Invalid"
    mentions(found.message, "master 0, worker 0, worker 1", "two sets of pods")
    assert stage.api.calls == []


def test_what_has_changed_meanwhile_is_not_written() -> None:
    """It is a conflict, after which the newer one is known."""
    stage = Stage(raw_workload(7))
    stage.api.answers["get", NAME] = raw_workload(8)
    with pytest.raises(ClusterError) as raised:
        stage.do(WriteWorkload(NAME, "w", "7", ()))
    assert raised.value.status == 409
    assert stage.api.named("replace") == []
    known = stage.known.workload_of("lab", UID)
    assert known is not None
    assert known.version == "8"


def test_the_position_is_told_where_kueue_serves_it_and_asked_for_seldom() -> None:
    """Kueue counts from 0 (apis/visibility/v1beta2, PendingWorkload)."""
    stage = Stage(raw_workload(7))
    assert stage.observe().position is None
    stage.now += 11
    pending = {"metadata": {"name": NAME}, "positionInLocalQueue": 0, "positionInClusterQueue": 2}
    stage.api.answers["get", "pendingworkloads"] = {"items": [pending]}
    assert stage.observe().position == 3
    asked = len(stage.api.calls)
    assert stage.observe().position == 3
    assert len(stage.api.calls) == asked


def test_a_flavor_that_is_not_known_is_no_reason_to_make_pods_without_it() -> None:
    """It may have been created just now. Pods that run need it no more, and are looked after."""
    admitted = [{"type": "Admitted", "status": "True", "reason": "Admitted"}]
    assigned = [{"name": "worker", "flavors": {"cpu": "spot"}}]
    stage = Stage(raw_workload(7, conditions=admitted, admission={"podSetAssignments": assigned}))
    mentions(stage.observe().unknown, "ResourceFlavor spot")
    stage.stored = replace(stage.stored, phase="Running")
    found = stage.observe()
    assert not found.unknown
    mentions(found.withheld, "ResourceFlavor spot")


def test_a_workload_that_was_deleted_is_gone_before_the_watch_says_so() -> None:
    """A Run that is resumed has no quota by it; another Workload of the name gives some."""
    stage = Stage(raw_workload(7))
    assert stage.observe().workload is not None
    asyncio.run(stage.workloads.carry_out(stage.run, None, DeleteWorkload(NAME, "w")))
    assert stage.observe() == Queueing()
    again = raw_workload(9)
    again["metadata"]["uid"] = "w2"
    stage.known.workloads.put(f"lab/{NAME}", stage.known.workloads.keep(again), "9")
    assert stage.observe().workload is not None
    stage.known.workloads.put(f"lab/{NAME}", stage.known.workloads.keep(raw_workload(11)), "11")
    assert stage.observe().workload is not None


def test_a_workload_that_is_gone_is_believed_after_a_while() -> None:
    """Kueue's definitions take it with them, and then the run goes on."""
    stage = Stage(status={"phase": "Running", "startTime": "2026-11-29T00:00:00Z"})
    mentions(stage.observe().unknown, "its Workload is gone")
    stage.now += 11
    assert stage.observe() == Queueing()
    stage.api.answers["get", "v1beta2"] = refused(404, "NotFound")
    found = stage.observe()
    assert not found.served
    mentions(found.unknown, "no Kueue")


def test_a_workload_that_lost_its_label_gets_it_again() -> None:
    """The watch says that it is gone: the pods stay, and it is not made a second time."""
    stage = Stage(status={"phase": "Running", "startTime": "2026-11-29T00:00:00Z"})
    stage.api.answers["get", NAME] = raw_workload(8)
    stage.api.answers["patch", NAME] = raw_workload(9)
    mentions(stage.observe().unknown, "its Workload is gone")
    stage.now += 11
    mentions(stage.observe().unknown, "lost its label")
    assert stage.api.bodies[-1]["metadata"]["labels"] == {names.MANAGED_BY: names.MANAGER}
    known = stage.observe().workload
    assert known is not None
    assert known.version == "9"


@pytest.mark.parametrize(
    ("owned", "uid", "deleted"), [(False, UID, [NAME]), (True, UID, []), (False, "another", [])]
)
def test_a_workload_that_its_run_left_behind_is_deleted(
    owned: bool, uid: str, deleted: list[str]
) -> None:
    """Unless the garbage collector does it, or it is another Run's."""
    stage = Stage()
    raw = raw_workload(8)
    raw["metadata"]["labels"] = {names.RUN_UID: uid}
    if not owned:
        del raw["metadata"]["ownerReferences"]
    stage.api.answers["get", NAME] = raw
    stage.api.answers["delete", NAME] = {}
    asyncio.run(stage.workloads.release(stage.stored))
    assert stage.api.named("delete") == deleted


def test_a_label_on_the_pods_too_would_hold_each_of_them() -> None:
    """Kueue would make a Workload for every pod beside that of the Run."""
    template = {"metadata": {"labels": {names.KUEUE_QUEUE: "ml"}}, **TEMPLATE}
    mentions(Stage(template=template).observe().unknown, "the pod template has the label", "remove")


SPLIT = {"replicas": {"worker": {"count": 5}}, "framework": None}
GIVEN = {
    "admission": {"podSetAssignments": [{"name": "worker", "flavors": {"cpu": "spot"}}]},
}


def split(pod: Json) -> Json:
    """Admission that puts the first two replicas on demand."""
    first = int(pod["metadata"]["labels"][names.REPLICA_INDEX]) < 2
    return placed("on-demand" if first else "spot", turns=[2])(pod)


def test_each_part_of_a_split_is_a_pod_set() -> None:
    """One pod of each is tried, and the leader beside them."""
    stage = Stage(**SPLIT)
    stage.api.admit = split
    sets = stage.queue()["spec"]["podSets"]
    found = [
        (each["name"], each["count"], each["template"]["spec"]["nodeSelector"]["pool"])
        for each in sets
    ]
    assert found == [("worker", 2, "on-demand"), ("worker-2", 3, "spot")]
    assert len(stage.api.tried) == 3


def test_a_run_that_waits_is_tried_again_when_the_replicas_serve_another_set() -> None:
    """Once for each set, and not while the replicas differ; else after ten minutes."""
    stage = Stage()
    stage.queue()
    assert not stage.observe().look
    stage.served = {"a" * 64}
    assert not stage.observe().look
    stage.served = {"a" * 64, "b" * 64}
    assert not stage.observe().look
    stage.served = {"b" * 64}
    assert stage.observe().look
    stage.api.admit = placed("spot", set="b" * 16)
    assert stage.look() is None
    assert not stage.observe().look
    stage.served = set()
    stage.now += 599
    assert not stage.observe().look
    stage.now += 2
    assert stage.observe().look
    assert stage.api.named("delete") == []


def test_a_run_that_waits_and_would_be_placed_otherwise_queues_again() -> None:
    """By another Workload; one whose pods are rejected now has none."""
    for admit in (placed("on-demand"), denied):
        stage = Stage()
        stage.queue()
        stage.api.answers["delete", NAME] = {}
        stage.api.admit = admit
        refusal = stage.look()
        assert (refusal is not None) == (admit is denied)
        assert stage.api.named("delete") == [NAME]
        assert stage.observe() == Queueing()


def denied(_pod: Json) -> Json:
    raise refused(403, "Forbidden", 'admission webhook "pods" denied the request: no')


def refuse_flavor(pod: Json) -> Json:
    """Admission that rejects what the flavor adds."""
    return denied(pod) if pod["spec"].get("tolerations") else placed("spot")(pod)


def remove_tolerations(pod: Json) -> Json:
    """Admission that takes all tolerations."""
    made = placed("spot")(pod)
    return {**made, "spec": {**made["spec"], "tolerations": []}}


@pytest.mark.parametrize(
    ("admit", "reason", "words"),
    [
        pytest.param(refuse_flavor, "CannotCreate", ["denied the request"], id="a toleration"),
        pytest.param(
            remove_tolerations, "CannotCreate", ["policies remove", '"key": "gpu"'], id="removed"
        ),
        pytest.param(denied, "CannotCreate", ["denied the request"], id="rejected"),
        pytest.param(placed("big"), "PlacementChanged", ["worker 0", "otherwise"], id="elsewhere"),
    ],
)
def test_what_cannot_be_created_with_its_quota_gives_it_back(
    admit: Callable[[Json], Json], reason: str, words: list[str]
) -> None:
    """Before a pod is created, and with what the flavor adds to it."""
    stage = Stage()
    made = stage.queue()
    toleration = {"key": "gpu", "operator": "Exists"}
    stage.known.flavors.replace({"spot": Flavor({}, (toleration,))}, "1")
    stage.keep(made, "QuotaReserved", "Admitted", **GIVEN)
    assert stage.observe().look
    stage.api.admit = admit
    assert stage.look() is None
    found = stage.evicted()
    assert found is not None
    assert found[0] == reason
    mentions(found[1], *words)


def test_what_fits_is_tried_once_for_what_kueue_gave() -> None:
    """Again if admission checks add to it."""
    stage = Stage()
    made = stage.queue()
    stage.known.flavors.replace({"spot": Flavor({"pool": "spot"}, ())}, "1")
    stage.keep(made, "QuotaReserved", **GIVEN)
    assert stage.look() is None
    assert stage.api.tried[-1]["spec"]["nodeSelector"] == {"pool": "spot"}
    stage.keep(made, "QuotaReserved", "Admitted", **GIVEN)
    assert not stage.observe().look
    added = {"name": "worker", "nodeSelector": {"zone": "a"}}
    check = {"name": "check", "state": "Ready", "podSetUpdates": [added]}
    stage.keep(made, "QuotaReserved", "Admitted", **GIVEN, admissionChecks=[check])
    assert stage.observe().look
    assert stage.look() is None
    assert not stage.observe().look
    assert stage.evicted() is None


def test_a_run_whose_own_selector_contradicts_the_flavor_gives_the_quota_back() -> None:
    """As an admission check that adds another value."""
    stage = Stage(environment={"nodeSelector": {"pool": "mine"}})
    made = stage.queue()
    stage.known.flavors.replace({"spot": Flavor({"pool": "spot"}, ())}, "1")
    stage.keep(made, "QuotaReserved", "Admitted", **GIVEN)
    assert stage.look() is None
    found = stage.evicted()
    assert found is not None
    mentions(found[1], "nodeSelector[pool] of worker 0", "'mine'", "'spot'")


def test_a_selector_of_the_run_that_policies_override_contradicts_no_flavor() -> None:
    """Kueue chose the flavor by what they put in its place, and the pod gets that."""
    stage = Stage(environment={"nodeSelector": {"pool": "mine"}})
    stage.api.admit = lambda pod: with_selector(placed("spot")(pod), {"pool": "spot"})
    made = stage.queue()
    stage.known.flavors.replace({"spot": Flavor({"pool": "spot"}, ())}, "1")
    stage.keep(made, "QuotaReserved", "Admitted", **GIVEN)
    assert stage.look() is None
    assert stage.evicted() is None
    assert stage.api.tried[-1]["spec"]["nodeSelector"] == {"pool": "spot"}


def test_a_webhook_that_does_not_answer_gives_no_quota_back() -> None:
    """It is tried again: nobody knows whether the pods can be created."""
    stage = Stage()
    made = stage.queue()
    stage.known.flavors.replace({"spot": Flavor({}, ())}, "1")
    stage.keep(made, "QuotaReserved", "Admitted", **GIVEN)
    stage.api.answers["create", NAME] = refused(500, "InternalError", "failed calling webhook x")
    found = stage.look()
    assert found is not None
    assert found.reason == "FailedCreate"
    assert stage.evicted() is None
    assert stage.observe().look


def test_a_class_that_policies_give_up_ends_the_admission() -> None:
    """The flavor was chosen for the class; a history of which policies make nothing does not."""
    stage = Stage(status={"phase": "Running", "startTime": MOMENT})
    stage.api.admit = placed("spot", fallback={"spot": 60})
    made = stage.queue()
    stage.keep(made, "QuotaReserved", "Admitted", **GIVEN)
    workload = stage.known.workload_of("lab", UID)
    assert workload is not None
    pods = [CreatePod("worker", 0, 1, history) for history in ("", "{}", "{}")]

    def leaves() -> bool:
        of = plan(stage.run)
        return asyncio.run(stage.workloads.leaves_for(stage.run, of, workload, pods))

    tries = len(stage.api.tried)
    assert not leaves()
    assert not leaves()
    assert len(stage.api.tried) == tries + 1
    assert stage.api.tried[-1]["metadata"]["annotations"][names.HISTORY] == "{}"
    pods = [CreatePod("worker", 0, 2, '{"events":[]}')]
    stage.api.admit = placed("any", fallback={"spot": "2026-11-30T13:00:00Z"})
    assert leaves()
    found = stage.evicted()
    assert found is not None
    assert found[0] == "PlacementChanged"
    mentions(found[1], "policies give up class spot for worker-0")


def move(pod: Json) -> Json:
    """Admission of a policy that overrides the pool, also that of a flavor."""
    return with_selector(placed("on-demand")(pod), {"pool": "on-demand"})


def remove_selector(pod: Json) -> Json:
    """Admission that takes the pool of a flavor, for a class of other nodes."""
    return with_selector(placed("spot")(pod), {})


@pytest.mark.parametrize(
    ("admit", "words"),
    [
        (move, ["nodeSelector[pool] of worker 1", "'on-demand'", "'spot'", "suspend and resume"]),
        (remove_selector, ["nodeSelector[pool] of worker 1", "remove 'spot'", names.KUEUE]),
        (remove_tolerations, ["tolerations of worker 1", '"key": "gpu"']),
    ],
)
def test_no_pod_is_made_that_would_leave_the_nodes_of_its_flavor(
    admit: Callable[[Json], Json], words: list[str]
) -> None:
    """By policies that came after the admission: quota is counted for other nodes."""
    stage = Stage(status={"phase": "Running", "startTime": MOMENT})
    made = stage.queue()
    toleration = {"key": "gpu", "operator": "Exists"}
    stage.known.flavors.replace({"spot": Flavor({"pool": "spot"}, (toleration,))}, "1")
    stage.keep(made, "QuotaReserved", "Admitted", **GIVEN)
    tries, pods = len(stage.api.tried), ["mnist-worker-1", "mnist-worker-2"]
    assert stage.create(1, 2).made == {*pods}
    assert len(stage.api.tried) == tries + 1
    stage.api.admit = admit
    done = stage.create(1, 2)
    assert done.made == set()
    assert stage.api.named("create") == [NAME, *pods]
    assert [(each.name, each.reason) for each in done.refused] == [(pods[0], "PlacementChanged")]
    mentions(done.refused[0].message, *words)


def test_who_gives_quota_back_again_and_again_waits_longer() -> None:
    """Until the run is whole once; another placement alone is no reason to wait, at first."""
    stage = Stage()
    made = stage.queue()
    pauses = []
    for reason in ("PlacementChanged", "PlacementChanged", "PlacementChanged", "CannotCreate"):
        stage.keep(made)
        workload = stage.known.workload_of("lab", UID)
        assert workload is not None
        stage.api.answers["get", NAME]["metadata"]["resourceVersion"] = workload.version
        stage.do(evict(workload, reason, "why"))
        pauses.append(stage.observe().pause)
    assert pauses == [0, 0, 60, 120]
    stage.keep(made, "Admitted", "PodsReady", **GIVEN)
    stage.observe()
    stage.keep(made)
    assert stage.observe().pause == 15
