"""Every alert is played by Prometheus' own rule tests, in hours of virtual time.

Each fault lasts an hour: its alert fires as long as the fault lasts, and goes out after its end.
Without scraping no alert about a series can fire, and FairleadSilent does.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from tests.control_planes import build_before_tests
from tests.go_programs import PROMTOOL, obtain_program
from tests.manifests.kustomize import one, overlay
from tests.manifests.monitoring import alerts

RULES: Final = one(overlay("monitoring"), "PrometheusRule")["spec"]
NAMES: Final = [each["alert"] for each in alerts(overlay("monitoring"))]
# Minutes of virtual time: the fault begins, ends; the play ends.
BEGIN, END, LAST = 10, 70, 140
# A series' value in each minute; None: it is not scraped.
Values: TypeAlias = "Sequence[float | None]"
Series: TypeAlias = "Mapping[str, Values]"
DAY: Final = 86400


def hour(good: float | None, bad: float | None) -> Values:
    """A state that is bad for the hour of the fault."""
    return [good] * BEGIN + [bad] * (END - BEGIN) + [good] * (LAST - END + 1)


def growing(per_minute: float, first: float | None = 0.0) -> Values:
    """A counter of what happens in the hour; `first` is its value before, None without a series."""
    counted = [(first or 0) + per_minute * each for each in range(1, END - BEGIN + 1)]
    return [first] * BEGIN + counted + [counted[-1]] * (LAST - END + 1)


def seconds() -> Values:
    """The seconds for which the fault has lasted; 0 without it."""
    lasting = [60.0 * minute for minute in range(END - BEGIN)]
    return [0.0] * BEGIN + lasting + [0.0] * (LAST - END + 1)


def series(name: str, pod: str, /, **labels: str) -> str:
    """A series of a pod as Prometheus stores it, with the labels that the ServiceMonitor gives."""
    target = {"component": pod.split("-")[0], "pod": pod, "namespace": "fairlead-system"}
    given = {**target, "job": "fairlead-metrics", "instance": pod, **labels}
    return f"{name}{{{','.join(f'{key}={json.dumps(value)}' for key, value in given.items())}}}"


W0, W1, C0, C1 = "webhook-0", "webhook-1", "controller-0", "controller-1"
WATCHED: Final = {"resource": "placementpolicies.fairlead.dev"}
WRITTEN: Final = {"verb": "PATCH", "resource": "placementpolicies/status"}
ROLLED_OUT: Final = {"deployment": "fairlead-webhook"}
OUTDATED: Final = {"definition": "runs.fairlead.dev"}
FALSE: Final = {"kind": "policy", "condition": "Accepted", "status": "False"}
EXPIRY: Final = "fairlead_certificate_expiry_timestamp_seconds"
IN_FORCE: Final = {"entry": "pods-0.fairlead.dev", "reason": ""}
REJECTIONS: Final = "apiserver_admission_webhook_rejection_count"
FAIL_OPEN: Final = "apiserver_admission_webhook_fail_open_count"
NOT_CALLED: Final = {"name": "pods-0.fairlead.dev", "error_type": "calling_webhook_error"}
OVERLOADED: Final = {"result": "overloaded", "code": "503"}


def healthy() -> Series:
    """Return the series that the alerts are about, of two replicas each, with nothing wrong."""
    found: dict[str, float] = {}
    for pod in (W0, W1, C0, C1):
        found[series("up", pod)] = 1
        found[series("fairlead_ready", pod)] = 1
        found[series("fairlead_cache_age_seconds", pod, **WATCHED)] = 20
        found[series("fairlead_watch_failing_seconds", pod, **WATCHED)] = 0
        found[series("fairlead_write_failing_seconds", pod, **WRITTEN)] = 0
    for pod in (W0, W1):
        found[series(EXPIRY, pod)] = 60 * DAY
        for what in ("policies", "certificate", "client authorities"):
            found[series("fairlead_refused", pod, what=what)] = 0
        found[series("fairlead_policy_set_errors", pod)] = 0
        found[series("fairlead_policy_set_info", pod, hash="a1")] = 1
        found[series("fairlead_engine_errors_total", pod)] = 0
        found[series("fairlead_admission_requests_total", pod, result="placed", code="200")] = 9
    for pod in (C0, C1):
        found[series("fairlead_leader", pod)] = pod == C0
        found[series("fairlead_certificate_failing_seconds", pod)] = 0
        found[series("fairlead_certificate_replicas_behind", pod)] = 0
        found[series("fairlead_queue_oldest_seconds", pod)] = 0
        found[series("fairlead_reconcile_failing_seconds", pod)] = 0
        found[series("fairlead_runs_not_understood", pod)] = 0
        found[series("fairlead_gang_longest_wait_seconds", pod)] = 7200
        found[series("fairlead_definition_outdated", pod, **OUTDATED)] = 0
        found[series("fairlead_rollout_incomplete", pod, **ROLLED_OUT)] = 0
        found[series("fairlead_policies", pod, **FALSE)] = 0
        # Neither is a fault: an exception that has ended, a class that waits for its nodes.
        for kind, condition in (("exception", "InForce"), ("class", "Satisfiable")):
            of = {"kind": kind, "condition": condition, "status": "False"}
            found[series("fairlead_policies", pod, **of)] = 3
    # Of the leader only.
    found[series(EXPIRY, C0, certificate="authority")] = 300 * DAY
    found[series("fairlead_intercepting", C0, **IN_FORCE)] = 1
    found[series("fairlead_unplaced_pods", C0)] = 0
    # Of an earlier day.
    found[series("up", "apiserver-0")] = 1
    found[series(FAIL_OPEN, "apiserver-0", name="pods-0.fairlead.dev")] = 3
    found[series(REJECTIONS, "apiserver-0", **NOT_CALLED)] = 2
    return {name: hour(value, value) for name, value in found.items()}


@dataclass(frozen=True)
class Play:
    """The series of a fault. The alert fires `within` minutes, and is out `until` minutes after.

    `also`: the alerts that rightly fire beside it at the end of the hour.
    """

    fault: Series
    _: KW_ONLY
    within: int
    until: int = 1
    also: frozenset[str] = field(default=frozenset())


def silent(component: str) -> Series:
    """No replica of the component is found any more."""
    return {name: hour(values[0], None) for name, values in healthy().items() if component in name}


PLAYS: Final[Mapping[str, Play]] = {
    "FairleadSilent": Play(silent('component="webhook"'), within=8),
    "FairleadReplicaSilent": Play(
        {name: hour(values[0], None) for name, values in healthy().items() if W1 in name}
        | {series("up", W1): hour(1, 0)},
        within=11,
    ),
    "FairleadWebhookNotReady": Play(
        {series("fairlead_ready", pod): hour(1, 0) for pod in (W0, W1)},
        within=2,
        also=frozenset({"FairleadWebhookReplicaNotReady"}),
    ),
    "FairleadWebhookReplicaNotReady": Play({series("fairlead_ready", W1): hour(1, 0)}, within=11),
    "FairleadCertificateExpires": Play({series(EXPIRY, W1): hour(60 * DAY, 4 * DAY)}, within=11),
    # Each of them is refused once: a counter moves once.
    "FairleadCertificateRefused": Play(
        {series("fairlead_refused", W1, what="certificate"): hour(0, 1)}, within=2
    ),
    "FairleadPoliciesRefused": Play(
        {series("fairlead_refused", W1, what="policies"): hour(0, 1)}, within=2
    ),
    "FairleadPoliciesWrong": Play({series("fairlead_policy_set_errors", W1): hour(0, 2)}, within=6),
    "FairleadLabelsLeftOut": Play(
        {series("fairlead_labels_left_out_total", W1, policy="team"): growing(5)},
        within=13,
        until=12,
    ),
    "FairleadPoliciesDiffer": Play(
        {
            series("fairlead_policy_set_info", W1, hash="a1"): hour(1, None),
            series("fairlead_policy_set_info", W1, hash="b2"): hour(None, 1),
        },
        within=16,
    ),
    "FairleadShedsRequests": Play(
        {series("fairlead_admission_requests_total", W1, **OVERLOADED): growing(5, None)},
        within=8,
        until=6,
    ),
    # One in ten minutes: it is a bug each time.
    "FairleadWebhookFails": Play(
        {
            series("fairlead_engine_errors_total", W1): [
                0.0 if value is None else value // 10 for value in growing(1)
            ]
        },
        within=11,
        until=16,
    ),
    "FairleadCacheIsOld": Play(
        {series("fairlead_cache_age_seconds", W1, **WATCHED): seconds()}, within=12
    ),
    "FairleadWatchFails": Play(
        {series("fairlead_watch_failing_seconds", C1, **WATCHED): seconds()}, within=13
    ),
    "FairleadWritesFail": Play(
        {series("fairlead_write_failing_seconds", C0, **WRITTEN): seconds()}, within=13
    ),
    "FairleadControllerWithoutLeader": Play(
        {
            series("fairlead_leader", C0): hour(1, 0),
            series("fairlead_intercepting", C0, **IN_FORCE): hour(1, None),
            series("fairlead_unplaced_pods", C0): hour(0, None),
        },
        within=3,
    ),
    "FairleadAuthorityExpires": Play(
        # Ahead of the hour: it has to last for one before it is an alert.
        {series(EXPIRY, C0, certificate="authority"): [50.0 * DAY] * END + [300.0 * DAY] * 71},
        within=51,
    ),
    "FairleadCertificatesNotKept": Play(
        {series("fairlead_certificate_failing_seconds", C0): seconds()}, within=18
    ),
    "FairleadReplicaBehind": Play(
        {series("fairlead_certificate_replicas_behind", C0): hour(0, 1)}, within=16
    ),
    "FairleadControllerQueueIsOld": Play(
        {series("fairlead_queue_oldest_seconds", C0): seconds()}, within=9
    ),
    "FairleadDefinitionOutdated": Play(
        {series("fairlead_definition_outdated", C0, **OUTDATED): hour(0, 1)}, within=6
    ),
    "FairleadRolloutIncomplete": Play(
        {series("fairlead_rollout_incomplete", C0, **ROLLED_OUT): hour(0, 1)}, within=16
    ),
    "FairleadRunsNotUnderstood": Play(
        {series("fairlead_runs_not_understood", C0): hour(0, 1)}, within=16
    ),
    "FairleadGangWaits": Play(
        {series("fairlead_gang_longest_wait_seconds", C0): hour(7200, 25_000)}, within=16
    ),
    "FairleadPolicyConditionFalse": Play(
        {series("fairlead_policies", C0, **FALSE): hour(0, 1)}, within=6
    ),
    "FairleadReconcilesFail": Play(
        {series("fairlead_reconcile_failing_seconds", C0): seconds()}, within=18
    ),
    "FairleadNotIntercepting": Play(
        {
            series("fairlead_intercepting", C0, **IN_FORCE): hour(1, None),
            series("fairlead_intercepting", C0, **{**IN_FORCE, "reason": "Absent"}): hour(None, 0),
        },
        within=2,
    ),
    # The entries are known, and the pods are not.
    "FairleadInterceptionUnknown": Play(
        {series("fairlead_unplaced_pods", C0): hour(0, None)}, within=6
    ),
    "FairleadPodsUnplaced": Play({series("fairlead_unplaced_pods", C0): hour(0, 4)}, within=6),
    # The first call that fails makes the series.
    "FairleadFailsOpen": Play(
        {series(FAIL_OPEN, "apiserver-0", name="namespaces.fairlead.dev"): growing(1, None)},
        within=1,
        until=12,
    ),
    "FairleadCallsFail": Play(
        {series(REJECTIONS, "apiserver-0", **NOT_CALLED): growing(1, 2)}, within=2, until=12
    ),
}


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build promtool before the first test, on the first run ever."""
    build_before_tests(session, "promtool", lambda: obtain_program(PROMTOOL))


@pytest.fixture(scope="module")
def promtool() -> Path:
    """The program that plays rules."""
    return obtain_program(PROMTOOL)


def notation(values: Values) -> str:
    """Write the values as promtool reads them; a series that ends has a marker, as in a scrape."""
    before: float | None = None
    written = []
    for value in values:
        gone = "_" if before is None else "stale"
        written.append(gone if value is None else str(float(value)))
        before = value
    return " ".join(written)


def firing(minute: int, wanted: Iterable[str], among: str = ".+") -> dict[str, Any]:
    """Expect exactly these alerts in a minute, of those that `among` matches."""
    matching = f'alertstate="firing",alertname=~"{among}"'
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(wanted)]
    expression = f"group by (alertname) (ALERTS{{{matching}}})"
    return {"expr": expression, "eval_time": f"{minute}m", "exp_samples": samples}


def play(promtool: Path, folder: Path, played: Series, expected: Sequence[dict[str, Any]]) -> str:
    """Play the rules over the healthy series with those of a fault; return what was not so."""
    found = {**healthy(), **played}
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": notation(v)} for name, v in found.items()],
        "promql_expr_test": expected,
    }
    (folder / "rules.yaml").write_text(json.dumps(RULES))
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
    (folder / "test.yaml").write_text(json.dumps(document))
    done = subprocess.run(
        [promtool, "test", "rules", "test.yaml"], cwd=folder, capture_output=True, text=True
    )
    return f"{done.stdout}{done.stderr}" if done.returncode else ""


def test_every_alert_is_played() -> None:
    """A new alert needs a play."""
    assert [*PLAYS] == NAMES


def test_nothing_fires_while_nothing_is_wrong(promtool: Path, tmp_path: Path) -> None:
    expected = [firing(minute, ()) for minute in range(0, LAST, 5)]
    assert play(promtool, tmp_path, {}, expected) == ""


@pytest.mark.parametrize("alert", PLAYS)
def test_an_alert_fires_as_long_as_its_fault_lasts(
    promtool: Path, tmp_path: Path, alert: str
) -> None:
    """In every minute of the hour; then no other one does but those that the play names."""
    of = PLAYS[alert]
    expected = [
        firing(BEGIN - 1, ()),
        *(firing(minute, {alert}, alert) for minute in range(BEGIN + of.within, END)),
        firing(END - 1, {alert, *of.also}),
        *(firing(minute, ()) for minute in range(END + of.until, LAST)),
    ]
    assert play(promtool, tmp_path, of.fault, expected) == ""


@pytest.mark.parametrize("alert", PLAYS)
def test_without_scraping_nothing_is_said_to_be_fine(
    promtool: Path, tmp_path: Path, alert: str
) -> None:
    """The fault is there, and scraping ends in the middle of its hour."""
    middle = (BEGIN + END) // 2
    played = {
        name: [value if minute < middle else None for minute, value in enumerate(values)]
        for name, values in {**healthy(), **PLAYS[alert].fault}.items()
    }
    silence = "FairleadSilent"
    expected = [
        *(firing(minute, {silence}, silence) for minute in range(middle + 3, LAST)),
        firing(LAST - 1, {silence}),
    ]
    assert play(promtool, tmp_path, played, expected) == ""


def test_what_was_there_before_a_gap_is_no_news_after_it(promtool: Path, tmp_path: Path) -> None:
    """Prometheus was away for an hour: counters that it finds again have not moved."""
    played = {name: hour(values[0], None) for name, values in healthy().items()}
    expected = [firing(minute, ()) for minute in range(END + 1, LAST)]
    assert play(promtool, tmp_path, played, expected) == ""
