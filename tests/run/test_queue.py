"""What a queue of Kueue asks of a Run; the laws: tests/run/machine, Kueue: tests/operators."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.objects import an_object
from tests.run.runs import UID, Json, containers, spec_of
from tests.wording import mentions
from webhook import names
from webhook.errors import InvalidRun
from webhook.run.actions import CheckWorkload, CreateWorkload, DeleteWorkload, WriteWorkload
from webhook.run.model import Run
from webhook.run.observed import Refusal
from webhook.run.queue import ADMITTED, decide, finished, pods_ready, waits_in_queue
from webhook.run.queue_state import Flavor, PodUpdate, Queueing, StoredWorkload
from webhook.run.queue_workload import (
    changed_status,
    conflict,
    find_updates,
    longest,
    pod_set,
    read_flavor,
    read_workload,
    updated,
)

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
BEGUN = {"phase": "Running", "startTime": "2026-11-29T00:00:00Z"}
IN_QUEUE = {**BEGUN, "conditions": [{"type": ADMITTED, "status": "True", "reason": "Admitted"}]}
TOLERATION = {"key": "gpu", "operator": "Exists"}


def queued(status: Json | None = None, queue: str = "ml", **spec: Any) -> Run:
    """A Run of two workers in a queue."""
    for condition in (status or {}).get("conditions", ()):
        condition.setdefault("lastTransitionTime", "2026-11-29T00:00:00Z")
    given = {
        "framework": "jax",
        "replicas": {"worker": {"count": 2}},
        "template": spec_of(containers("main")),
        **spec,
    }
    labels = {names.KUEUE_QUEUE: queue} if queue else {}
    metadata = {"name": "train", "namespace": "lab", "uid": UID, "labels": labels}
    found = an_object(names.API_VERSION, "Run", metadata, given)
    return Run.model_validate({**found, "status": status or {}})


def workload(
    *true: str,
    queue: str = "ml",
    active: bool = True,
    sets: Mapping[str, Json] | None = None,
    **status: Any,
) -> StoredWorkload:
    """Its Workload, with these conditions (Type or Type=Reason: message), and the topologies that
    its sets of pods ask for."""
    asked = [{"name": name, "topologyRequest": each} for name, each in (sets or {}).items()]
    conditions = []
    for each in true:
        kind, _, rest = each.partition("=")
        reason, _, message = rest.partition(": ")
        conditions.append({"type": kind, "status": "True", "reason": reason, "message": message})
    owner = {"apiVersion": names.API_VERSION, "kind": "Run", "uid": UID, "controller": True}
    metadata = {"name": "run-train", "namespace": "lab", "uid": "w", "resourceVersion": "7"}
    found = read_workload(
        {
            "metadata": {**metadata, "ownerReferences": [{**owner, "name": "train"}]},
            "spec": {"queueName": queue, "active": active, "podSets": asked},
            "status": {"conditions": conditions, **status},
        }
    )
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("run", "known", "opened", "words"),
    [
        pytest.param(queued(queue=""), Queueing(), True, [], id="no queue"),
        pytest.param(queued(), Queueing(), False, ["queue ml"], id="new"),
        pytest.param(queued(BEGUN), Queueing(), True, [], id="a label that came later"),
        pytest.param(
            queued(IN_QUEUE),
            Queueing(unknown="no Kueue", served=False),
            True,
            [],
            id="Kueue was taken away",
        ),
        pytest.param(
            queued(), Queueing(unknown="no Kueue", served=False), False, ["no Kueue"], id="no Kueue"
        ),
        pytest.param(
            queued(),
            Queueing(workload("QuotaReserved"), position=3),
            False,
            ["position 3", "has quota", "admission checks"],
            id="checks",
        ),
        pytest.param(
            queued(),
            Queueing(workload(active=False)),
            False,
            ["deactivated", "patch workloads.kueue.x-k8s.io run-train -n lab", '"active":true'],
            id="deactivated",
        ),
        pytest.param(
            queued(IN_QUEUE),
            Queueing(workload("QuotaReserved", "Admitted")),
            True,
            [],
            id="admitted",
        ),
        pytest.param(
            queued(IN_QUEUE),
            Queueing(workload("QuotaReserved", "Admitted"), withheld="a flavor is gone"),
            True,
            [],
            id="admitted, and no more can be created",
        ),
        pytest.param(
            queued(IN_QUEUE),
            Queueing(workload("QuotaReserved", "Admitted", "Evicted=Preempted: for another")),
            False,
            ["evicted from queue ml", "Preempted: for another"],
            id="evicted",
        ),
        pytest.param(
            queued(),
            Queueing(workload("Evicted=Preempted: for another")),
            False,
            ["waits in queue ml", "it was evicted (Preempted"],
            id="waits again",
        ),
    ],
)
def test_who_may_have_pods(run: Run, known: Queueing, opened: bool, words: list[str]) -> None:
    """Only what is admitted, and what began without a queue; the message says why not."""
    gate = decide(run, known, NOW, pods_left=False)
    assert gate.open == opened
    mentions(gate.message, *words)
    if not opened:
        assert gate.updates[0].message == gate.message


def test_who_waits_is_looked_at_again_the_sooner_the_nearer() -> None:
    """Nothing is watched that tells of a new position."""
    found = [
        decide(queued(), Queueing(workload(*true), position=position), NOW, pods_left=False).after
        for true in ((), ("Evicted=Preempted: for another",))
        for position in (None, 1, 500)
    ]
    assert found == [15, 16, 515, 15, 16, 515]


def test_nothing_is_done_while_the_queue_of_a_running_run_is_unknown() -> None:
    """Neither are its pods deleted, nor are others made without what the flavor asks for."""
    assert decide(
        queued(IN_QUEUE), Queueing(unknown="not listed yet"), NOW, pods_left=True
    ).look_again


@pytest.mark.parametrize("pods_left", [True, False])
@pytest.mark.parametrize(
    ("run", "found", "action"),
    [
        pytest.param(queued(IN_QUEUE), None, CreateWorkload, id="gone"),
        pytest.param(queued(), workload(queue="other"), DeleteWorkload, id="another queue"),
        pytest.param(queued(IN_QUEUE), workload("Finished"), DeleteWorkload, id="finished"),
        pytest.param(queued(suspend=True), workload("Admitted"), DeleteWorkload, id="suspended"),
        pytest.param(
            queued(IN_QUEUE),
            workload("QuotaReserved", "Evicted=Preempted"),
            WriteWorkload,
            id="evicted",
        ),
    ],
)
def test_the_quota_stays_until_the_pods_are_gone(
    run: Run, found: StoredWorkload | None, action: type, pods_left: bool
) -> None:
    """Nothing is done with the Workload before."""
    actions = decide(run, Queueing(found), NOW, pods_left=pods_left).actions
    assert [type(each) for each in actions] == ([] if pods_left else [action])


SINCE = "2026-11-30T11:59:50Z"
OURS: Json = {
    "type": "Evicted",
    "status": "True",
    "reason": "CannotCreate",
    "message": "exceeded quota",
    "lastTransitionTime": SINCE,
}


@pytest.mark.parametrize(
    ("holds", "pause", "pods_left", "action", "words"),
    [
        pytest.param(True, 30, True, None, ["pods are being deleted"], id="pods left"),
        pytest.param(True, 30, False, WriteWorkload, ["at 2026-11-30T12:00:20Z"], id="quota held"),
        pytest.param(False, 30, False, None, ["queues again at 2026-11-30T12:00:20Z"], id="waits"),
        pytest.param(False, 5, False, DeleteWorkload, ["exceeded quota"], id="queues again"),
        pytest.param(True, 5, False, DeleteWorkload, ["exceeded quota"], id="both at once"),
    ],
)
def test_a_run_that_cannot_be_created_gives_its_quota_back_and_queues_again_later(
    holds: bool, pause: float, pods_left: bool, action: type | None, words: list[str]
) -> None:
    """That is no disruption, and begins the run again."""
    conditions = [OURS, *([{**OURS, "type": "QuotaReserved"}] if holds else [])]
    found = workload(conditions=conditions)
    gate = decide(queued(IN_QUEUE), Queueing(found, pause=pause), NOW, pods_left=pods_left)
    assert not gate.open
    assert gate.evicted is None
    assert gate.restarts
    assert [type(each) for each in gate.actions] == ([action] if action else [])
    assert gate.after == (20 if "Z" in words[0] else None)
    mentions(gate.message, "gives up the quota of queue ml", *words)
    (update,) = gate.updates
    assert update.reason == "CannotCreate"


@pytest.mark.parametrize(
    ("since", "ready", "pods_left", "gives_back"),
    [
        pytest.param("11:58:00", None, True, True, id="never whole"),
        pytest.param("11:58:00", ("False", "WaitForStart"), True, True, id="not whole yet"),
        pytest.param("11:59:30", None, True, False, id="for seconds"),
        pytest.param("11:00:00", ("True", "Started"), True, False, id="whole just now"),
        pytest.param("11:00:00", ("False", "WaitForRecovery"), True, False, id="some run"),
        pytest.param("11:00:00", ("False", "WaitForRecovery"), False, True, id="none runs"),
    ],
)
def test_pods_that_are_refused_for_a_while_give_the_quota_back(
    since: str, ready: tuple[str, str] | None, pods_left: bool, gives_back: bool
) -> None:
    """A ResourceQuota may admit two of four. A run that was whole keeps what uses its quota."""
    moment = f"2026-11-30T{since}Z"
    admitted = {"type": "Admitted", "status": "True", "lastTransitionTime": moment}
    conditions = [admitted]
    if ready:
        status, reason = ready
        conditions.append(
            {
                "type": "PodsReady",
                "status": status,
                "reason": reason,
                "lastTransitionTime": "2026-11-30T11:30:00Z",
            }
        )
    known = Queueing(workload(conditions=conditions))
    refusals = (Refusal("train-worker-2", "QuotaExceeded", "exceeded quota: pods"),)
    run = queued(IN_QUEUE)
    gate = decide(run, known, NOW, pods_left=pods_left, refusals=refusals)
    assert gate.open
    assert bool(gate.actions) == gives_back
    assert gate.after == (0 if gives_back else 30 if since == "11:59:30" else None)
    if gives_back:
        (action,) = gate.actions
        assert isinstance(action, WriteWorkload)
        (condition,) = action.conditions
        assert (condition["type"], condition["reason"]) == ("Evicted", "CannotCreate")
        mentions(condition["message"], "train-worker-2", "exceeded quota")
    assert decide(run, known, NOW, pods_left=pods_left).actions == ()


@pytest.mark.parametrize("conditions", [(), ("QuotaReserved",), ("QuotaReserved", "Admitted")])
def test_pods_that_are_to_be_tried_are_not_created_before(conditions: tuple[str, ...]) -> None:
    """Nor does the place in the queue matter."""
    gate = decide(queued(), Queueing(workload(*conditions), look=True), NOW, pods_left=False)
    assert not gate.open
    assert [type(each) for each in gate.actions] == [CheckWorkload]
    mentions(gate.message, "waits in queue ml")


@pytest.mark.parametrize(("reason", "at_once"), [("Preempted", True), ("PodsReadyTimeout", False)])
def test_what_is_released_is_without_admission(reason: str, at_once: bool) -> None:
    """Kueue itself says when what was too slow may try again."""
    found = workload("QuotaReserved", "Admitted", f"Evicted={reason}")
    (action,) = decide(queued(IN_QUEUE), Queueing(found), NOW, pods_left=False).actions
    assert isinstance(action, WriteWorkload)
    raw = {
        "metadata": {"generation": 2},
        "status": {
            "admission": {"clusterQueue": "all"},
            "conditions": [
                {"type": "Admitted", "status": "True", "lastTransitionTime": "before"},
                {"type": "Requeued", "status": str(at_once), "lastTransitionTime": "before"},
            ],
        },
    }
    status = changed_status(raw, action.conditions, "now")["status"]
    assert "admission" not in status
    told = {
        each["type"]: (each["status"], each["lastTransitionTime"]) for each in status["conditions"]
    }
    assert told == {
        "Admitted": ("False", "now"),
        "QuotaReserved": ("False", "now"),
        "Requeued": (str(at_once), "before"),
        "PodsReady": ("False", "now"),
    }


@pytest.mark.parametrize(
    ("before", "ready", "reason"),
    [
        ((), False, "WaitForStart"),
        ((), True, "Started"),
        (("PodsReady=Started",), False, "WaitForRecovery"),
        (("PodsReady=Started",), True, None),
    ],
)
def test_kueue_hears_whether_the_pods_run(
    before: tuple[str, ...], ready: bool, reason: str | None
) -> None:
    """A run that has been ready before recovers."""
    found = Queueing(workload("Admitted", *before))
    told = [each.conditions[0]["reason"] for each in pods_ready(found, ready=ready)]  # type: ignore[union-attr]
    assert told == ([] if reason is None else [reason])
    assert not [*pods_ready(Queueing(workload()), ready=ready)]


@pytest.mark.parametrize(
    ("policy", "pods_left", "ends"),
    [("Running", True, False), ("Running", False, True), ("None", True, True)],
)
def test_a_run_that_is_over_gives_back_its_quota(policy: str, pods_left: bool, ends: bool) -> None:
    """When its pods are gone, or if nobody deletes them."""
    run = queued({"phase": "Failed", "message": "why"}, cleanPodPolicy=policy)
    actions = [*finished(run, Queueing(workload("Admitted")), pods_left=pods_left)]
    told = [each.conditions[0] for each in actions if isinstance(each, WriteWorkload)]
    assert [(each["reason"], each["message"]) for each in told] == [("Failed", "why")] * ends


ADMISSION: Json = {
    "admission": {
        "podSetAssignments": [
            {"name": "worker", "flavors": {"cpu": "spot", "gpu": "spot"}},
            {"name": "worker-1", "flavors": {"cpu": "big"}, "topologyAssignment": {}},
        ]
    },
    "admissionChecks": [
        {
            "name": "check",
            "state": "Ready",
            "podSetUpdates": [
                {"name": "worker", "labels": {"by": "check"}, "nodeSelector": {"zone": "a"}}
            ],
        }
    ],
}


@pytest.mark.parametrize(
    ("asked", "implicit"),
    [({}, True), ({"required": "rack"}, False), ({"unconstrained": True}, False)],
)
def test_kueue_opens_the_gate_of_pods_that_have_an_annotation_of_a_topology(
    asked: Json, implicit: bool
) -> None:
    """Those that ask for none get one with the assignment (pkg/podset, FromAssignment)."""
    raw = {"name": "worker", "flavors": {"cpu": "spot"}, "topologyAssignment": {"levels": ["rack"]}}
    found = workload("Admitted", admission={"podSetAssignments": [raw]}, sets={"worker": asked})
    update = found.assignments["worker"].update
    assert update.gated
    assert update.annotations.get(f"{names.KUEUE_PREFIX}podset-unconstrained-topology") == (
        "true" if implicit else None
    )


def test_what_pods_ask_of_a_topology_is_asked_of_kueue() -> None:
    """By the annotations that Kueue's jobs have; what cannot be read is named."""
    prefix = f"{names.KUEUE_PREFIX}podset"
    given = {
        f"{prefix}-required-topology": "rack",
        f"{prefix}-slice-required-topology": "host",
        f"{prefix}-slice-size": "4",
        f"{prefix}-group-name": "together",
        f"{prefix}-unconstrained-topology": "T",
        f"{prefix}-slice-required-topology-constraints": '[{"topology": "host", "size": 2}]',
    }
    placed: Json = {"metadata": {"annotations": given}, "spec": {}}
    assert pod_set("worker", 2, placed)["topologyRequest"] == {
        "required": "rack",
        "unconstrained": True,
        "podSetSliceRequiredTopology": "host",
        "podSetSliceSize": 4,
        "podsetSliceRequiredTopologyConstraints": [{"topology": "host", "size": 2}],
        "podSetGroupName": "together",
    }
    given[f"{prefix}-slice-size"] = "four"
    with pytest.raises(InvalidRun, match="slice-size: 'four'"):
        pod_set("worker", 2, placed)


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "1h", "9" * 20, "\u0663"])
def test_the_longest_time_is_a_number_of_seconds(text: str) -> None:
    label = f"{names.KUEUE_PREFIX}max-exec-time-seconds"

    def labelled(value: str) -> Run:
        run = queued()
        own = {**(run.metadata.labels or {}), label: value}
        return run.model_copy(update={"metadata": run.metadata.model_copy(update={"labels": own})})

    assert longest(labelled("3600")) == {"maximumExecutionTimeSeconds": 3600}
    with pytest.raises(InvalidRun, match="max-exec-time-seconds"):
        longest(labelled(text))


def test_pods_get_what_flavors_and_checks_want() -> None:
    """Each pod set its own."""
    flavors = {
        "spot": read_flavor({"spec": {"nodeLabels": {"pool": "s"}, "tolerations": [TOLERATION]}}),
        "big": Flavor({"pool": "b"}, ()),
    }
    found, *problems = find_updates(workload("Admitted", **ADMISSION), flavors)
    assert problems == ["", ""]
    assert found["worker"] == PodUpdate(
        {"pool": "s", "zone": "a"},
        (TOLERATION,),
        {"by": "check", names.KUEUE_PODSET: "worker"},
        {names.KUEUE_WORKLOAD: "run-train"},
    )
    assert found["worker-1"].node_selector == {"pool": "b"}
    pod = {"metadata": {"labels": {"own": "1"}}, "spec": {"tolerations": [TOLERATION]}}
    made = updated(pod, found["worker"])
    assert made["spec"] == {
        "tolerations": [TOLERATION],
        "nodeSelector": {"pool": "s", "zone": "a"},
    }
    assert made["metadata"]["labels"] == {"own": "1", "by": "check", names.KUEUE_PODSET: "worker"}
    assert updated(pod, None) is pod


def test_what_the_run_itself_wants_and_kueue_does_not_is_a_problem() -> None:
    """As is a flavor that is not known."""
    pod = {"metadata": {}, "spec": {"nodeSelector": {"pool": "mine"}}}
    mentions(
        conflict("worker", pod, PodUpdate({"pool": "s"})),
        "nodeSelector[pool] of worker",
        "the run wants 'mine', Kueue 's'",
        "change the flavor",
    )
    assert conflict("worker", pod, PodUpdate({"pool": "mine", "zone": "a"})) == ""
    _, problem, _ = find_updates(workload("Admitted", **ADMISSION), {})
    mentions(problem, "ResourceFlavor spot")


def test_a_label_that_comes_late_says_when_it_counts() -> None:
    """Nobody wonders why the run does not wait."""
    (update,) = decide(queued(BEGUN), Queueing(), NOW, pods_left=True).updates
    mentions(update.message, names.KUEUE_QUEUE, "after the run began", "suspended and resumed")


def test_a_check_that_contradicts_the_flavor_is_a_problem() -> None:
    """As with Kueue's own jobs; it counts quota of the flavor."""
    flavors = {"spot": Flavor({"zone": "b"}, ()), "big": Flavor({}, ())}
    _, _, problem = find_updates(workload("Admitted", **ADMISSION), flavors)
    mentions(
        problem, "nodeSelector[zone] of worker", "'b' by a flavor", "'a' by", "admission check"
    )


def admission(status: str, reason: str, **other: Any) -> Json:
    return {**other, "conditions": [{"type": ADMITTED, "status": status, "reason": reason}]}


@pytest.mark.parametrize(
    ("run", "waits"),
    [
        pytest.param(queued(), True, id="new"),
        pytest.param(queued(admission("False", "Queued", phase="Suspended")), True, id="waits"),
        pytest.param(queued(admission("False", "Evicted", **BEGUN)), True, id="evicted"),
        pytest.param(queued(IN_QUEUE), False, id="admitted"),
        pytest.param(queued(BEGUN), False, id="the label came later"),
        pytest.param(
            queued(admission("False", "NotQueued", **BEGUN)), False, id="and this is known"
        ),
        pytest.param(queued(suspend=True), False, id="suspended by its owner"),
        pytest.param(queued({"phase": "Failed"}), False, id="over"),
        pytest.param(queued(queue=""), False, id="no queue"),
    ],
)
def test_runs_that_wait_in_a_queue_are_known_by_their_status(run: Run, waits: bool) -> None:
    """An older controller, which knows no queues, would start these."""
    assert waits_in_queue(run) is waits
