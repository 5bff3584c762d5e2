"""How a run is told to people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click
import pytest

from tests.wording import Wording, line_with, mentions
from webhook.cli.run.report import Replica, Report
from webhook.cli.run.status_text import lines
from webhook.run.model import RunStatus

NOW = datetime(2026, 8, 1, 13, tzinfo=UTC)
HOUR_AGO = "2026-08-01T12:00:00Z"


def report(
    *replicas: Replica, behind: bool = False, deleted: bool = False, **status: Any
) -> Report:
    return Report(
        namespace="research",
        name="mnist",
        kind="experiment",
        framework="tensorflow",
        created=HOUR_AGO,
        behind=behind,
        deleted=deleted,
        status=RunStatus.model_validate({"observedGeneration": 1, **status}),
        replicas=replicas,
    )


def text(told: Report, *, everything: bool = False) -> list[str]:
    return [click.unstyle(line) for line in lines(told, NOW, everything=everything)]


def condition(kind: str, status: str, reason: str = "Why", message: str = "") -> dict[str, str]:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": HOUR_AGO,
    }


def test_the_first_line_says_how_it_is() -> None:
    """Name, phase, and why; a long message stands below."""
    assert text(report(phase="Running", message="3 run"))[0] == "mnist: Running, 3 run"
    first, second, *_ = text(report(phase="Pending", message="because " * 20))
    assert first == "mnist: Pending"
    assert second.startswith("  because because")


def test_the_head_has_what_is_known_and_nothing_else() -> None:
    """No zeros and no dashes."""
    assert text(report(phase="Running", message="fine"))[1:] == [
        "  namespace  research",
        "  kind       experiment, tensorflow",
        "  created    1h ago",
    ]
    over = text(
        report(
            phase="Succeeded",
            startTime=HOUR_AGO,
            completionTime="2026-08-01T12:30:00Z",
            duration="30m",
            restarts=2,
            disruptions=1,
            address="mnist.research:80",
        )
    )
    assert over[4:] == [
        "  took         30m",
        "  ended        30m ago",
        "  restarts     2",
        "  disruptions  1",
        "  address      mnist.research:80",
    ]


@pytest.mark.parametrize(
    ("told", "facts"),
    [
        (report(observedGeneration=0), ["no controller", "yet"]),
        (report(behind=True, message="3 run"), ["3 run (", "last change", "not"]),
        (report(deleted=True), ["being deleted"]),
    ],
    ids=["new", "behind", "deleted"],
)
def test_a_status_that_is_not_current_is_reported(
    told: Report, facts: list[str], wording: Wording
) -> None:
    """Else one would believe it."""
    wording(line_with(text(told), *facts))


def test_only_conditions_that_matter_are_reported() -> None:
    """What is not as it should be; and of a run that has ended only how."""
    conditions = [
        condition("Created", "True"),
        condition("Scheduled", "False", "Unschedulable", "no node"),
        condition("Ready", "False", "NotReady"),
        condition("Suspended", "False"),
    ]
    shown = [line.split() for line in text(report(phase="Pending", conditions=conditions))]
    assert ["Scheduled", "False", "Unschedulable", "1h", "ago:", "no", "node"] in shown
    assert not any(line[:1] in (["Created"], ["Suspended"]) for line in shown)
    ended = report(phase="Failed", conditions=[*conditions, condition("Failed", "True", "BackOff")])
    assert [each.type for each in ended.telling_conditions] == ["Failed"]


def test_roles_are_counted_in_a_table() -> None:
    """In the order of the status."""
    counts = {"desired": 7, "active": 6, "ready": 5, "succeeded": 1, "failed": 2, "restarts": 3}
    shown = text(report(replicas={"worker": {**counts, "disruptions": 4}}))
    assert shown[-1].split() == ["worker", "7", "6", "5", "1", "2", "3", "4"]


def test_columns_in_which_nothing_stands_are_left_out() -> None:
    """Who may not see nodes' labels sees no empty columns."""
    plain = Replica("worker", 0, "mnist-worker-0", "Running", "node-1")
    assert text(report(plain))[-2].split() == ["replica", "state", "node"]
    full = Replica("worker", 1, "p", "Running", "node-1", pool="a", capacity="spot")
    assert text(report(plain, full))[-3].split() == ["replica", "state", "node", "pool", "capacity"]


def test_of_a_large_run_those_that_are_alike_are_put_together(wording: Wording) -> None:
    """Those that are not fine first, and all of them with --all."""
    many = [Replica("worker", n, f"p{n}", "Running", f"node-{n % 7}") for n in range(1000)]
    many[5] = Replica("worker", 5, "p5", "Pending", note="0/12 nodes are available")
    many[7] = Replica("worker", 7, "", "Waiting", downs=2, since=HOUR_AGO)
    shown = text(report(*many))
    pending, waiting, alike = shown[-3:]
    mentions(pending, "worker-5 Pending", many[5].note)
    mentions(waiting, "worker-7 Waiting", "2 times", "1h ago")
    assert alike.split() == ["worker", "0-4,6,8-999", "Running", "7", "nodes"]
    wording(waiting)
    assert len(text(report(*many), everything=True)) == len(shown) - 3 + 1000


def test_pods_without_a_role_keep_their_names() -> None:
    """A notebook's pods are no replicas."""
    pods = [Replica("", 0, f"nb-{n}", "Running", "node-1") for n in range(30)]
    mentions(text(report(*pods))[-1], "nb-0, nb-1, nb-2 and 27 more", "Running node-1")


def test_the_last_failure_is_reported_with_its_last_lines(wording: Wording) -> None:
    """Twenty of them at most; a disruption is no failure of the program."""
    failure = {
        "replica": "mnist-worker-2",
        "node": "node-1",
        "exitCode": 1,
        "reason": "Error",
        "message": "\n".join(f"line {n}" for n in range(30)) + "\n",
        "time": HOUR_AGO,
    }
    shown = text(report(lastFailure=failure))
    mentions(shown[-21], "mnist-worker-2", "node-1", "1h ago", ": Error", "exit code 1")
    wording(shown[-21])
    assert (shown[-20], shown[-1]) == ("    | line 10", "    | line 29")
    gone = {"replica": "r", "reason": "NodeLost", "disruption": True, "time": HOUR_AGO}
    mentions(text(report(lastFailure=gone))[-1], "r disrupted", "1h ago", ": NodeLost")


def test_the_last_incidents_are_reported(wording: Wording) -> None:
    """What was charged, for which replica and node, and what it cost."""
    began = {"replica": "mnist-worker-2", "reason": "NodeNotReady", "began": HOUR_AGO}
    lost = {"node": "spot-1", "class": "spot", "collateral": 3, "secondsLost": 95}
    incidents = [
        {**began, "cause": "Failure"},
        {**began, "cause": "Failure"},
        {**began, "cause": "Disruption", **lost},
        {**began, "cause": "Unknown", "reason": "\x1b[2Jgone"},
    ]
    shown = text(report(incidents=incidents))
    assert shown[-4].strip() == "Incidents"
    mentions(shown[-2], "disruption", "mnist-worker-2", "spot-1", "class spot", "1h ago", "3", "1m")
    wording("\n".join(shown[-3:]))


def test_what_others_wrote_steers_no_terminal() -> None:
    """A program's last words are its author's, and those of a node, or of a webhook, others'."""
    evil = "\x1b[2Jgone"
    failure = {
        "replica": "mnist-worker-0",
        "time": HOUR_AGO,
        "reason": evil,
        "message": f"one\n{evil}",
        "disruption": False,
    }
    one = Replica("worker", 0, "mnist-worker-0", "Waiting", note=evil)
    told = report(
        one,
        phase="Failed",
        message=evil,
        conditions=[condition("Failed", "True", message=evil)],
        lastFailure=failure,
    )
    shown = "\n".join(lines(told, NOW))
    assert "\x1b[2J" not in shown
    assert shown.count("\\x1b[2Jgone") >= 4
