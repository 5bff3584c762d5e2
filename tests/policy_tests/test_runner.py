"""Policy tests pass where their expectations are met, and say what they saw where not."""

from __future__ import annotations

import pytest

from tests.policy_tests.writing import (
    CLASS,
    HEAD,
    WORKER,
    WORKERS_ON_SPOT,
    case,
    policy,
    verdict,
    verdicts,
)
from tests.wording import Wording, mentions
from webhook import names

NO_RUN = "{labels: {app: web}}"
MASTER = "{labels: {fairlead.dev/run: r, fairlead.dev/role: master}}"
STEADY_WORKER = (
    "{labels: {fairlead.dev/run: r, fairlead.dev/role: worker}, spec: {nodeSelector: {zone: a}}}"
)
SPEND = policy(
    "spend",
    "overrides: {nodeSelector: {zone: a}, labels: {team: x}, annotations: {note: why},"
    " priorityClassName: high, securityContext: {runAsUser: 1000},"
    " tolerations: [{key: gpu, operator: Exists}]}",
)
EAST = policy("east", "requirements: {nodeSelector: {zone: east}}")
ON_SPOT = (
    "{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution:"
    " {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [spot]}]}]}}}"
)


@pytest.mark.parametrize(
    "expect",
    [
        "{result: placed}",
        "{policies: [workers-on-spot]}",
        "{warnings: []}",
        "{runsOn: [spot-1]}",
        f"{{equals: {{affinity: {ON_SPOT}}}}}",
        f"{{contains: {{affinity: {ON_SPOT}}}}}",
        "{contains: {tolerations: [{key: spot}]}}",
        "{equals: {nodeSelector: {}, priorityClassName: ''}}",
        "{lacks: {nodeSelector: [pool], tolerations: [{key: gpu}]}}",
    ],
)
def test_an_expectation_that_is_met_passes(expect: str) -> None:
    """What the engine does is what the test sees."""
    assert verdict(expect).failures == []


@pytest.mark.parametrize(
    ("expect", "field"),
    [
        ("{policies: [], runsOn: [spot-1]}", "runsOn"),
        ("{policies: [], equals: {nodeSelector: {pool: spot}}}", "equals"),
        ("{policies: [], contains: {tolerations: [{key: spot}]}}", "contains"),
        ("{policies: [], lacks: {nodeSelector: [pool]}}", "lacks"),
    ],
)
def test_what_is_expected_of_a_pod_that_is_not_placed_fails(expect: str, field: str) -> None:
    """A mark that is misspelt, say: nothing was tested."""
    (failure,) = verdict(expect, pod=NO_RUN).failures
    assert (failure.field, failure.actual) == (field, "not-a-run")


@pytest.mark.parametrize(
    ("expect", "field", "seen"),
    [
        ("{result: unchanged}", "result", "placed"),
        ("{policies: []}", "policies", "workers-on-spot"),
        ("{policies: [workers-on-spot, other]}", "policies", "workers-on-spot"),
        ("{warnings: [beware]}", "warnings", "none"),
        ("{runsOn: [spot-1, steady-1]}", "runsOn", "spot-1"),
        ("{runsOn: []}", "runsOn", "spot-1"),
        ("{equals: {nodeSelector: {pool: spot}}}", "nodeSelector", "unset"),
        ("{equals: {affinity: {}}}", "affinity", '{"nodeAffinity"'),
        ("{contains: {tolerations: [{key: gpu}]}}", "tolerations", '[{"key": "spot"'),
        ("{lacks: {tolerations: [{key: spot}]}}", "tolerations", '[{"key": "spot"'),
    ],
)
def test_an_unmet_expectation_fails_with_the_actual_value(
    expect: str, field: str, seen: str
) -> None:
    """The failure names the field, and shows the value that came out."""
    (failure,) = verdict(expect).failures
    assert failure.field == field
    assert failure.actual.startswith(seen)


@pytest.mark.parametrize(
    ("expect", "field"),
    [
        ("{lacks: {nodeSelector: [zone]}}", "nodeSelector"),
        ("{lacks: {labels: [team]}}", "labels"),
        ("{lacks: {annotations: [note]}}", "annotations"),
        ("{lacks: {securityContext: [runAsUser]}}", "securityContext"),
        ("{equals: {priorityClassName: low}}", "priorityClassName"),
        ("{equals: {labels: {team: x}}}", "labels"),
        ("{contains: {securityContext: {runAsUser: 0}}}", "securityContext"),
    ],
)
def test_every_field_can_be_asked(expect: str, field: str) -> None:
    """Each kind of field is read from where the pod has it."""
    (failure,) = verdict(expect, policies=SPEND).failures
    assert failure.field == field


def test_fairleads_own_annotation_is_not_a_field_of_the_pod() -> None:
    """It is on every pod of a run, and a test need not name it."""
    assert names.PLACEMENT not in str(
        verdict("{equals: {annotations: {note: how}}}", policies=SPEND)
    )
    assert verdict("{equals: {annotations: {note: why}}}", policies=SPEND).passed


def test_a_test_in_which_no_policy_took_part_fails(wording: Wording) -> None:
    """It would pass whatever the policies say; the conditions that failed are named."""
    (failure,) = verdict("{result: unchanged}", MASTER).failures
    assert failure.field == "policies"
    (because,) = failure.because
    mentions(because, "workers-on-spot does not match", "match.roles", "master", "worker")
    wording(because)


def test_a_test_may_expect_that_no_policy_takes_part() -> None:
    """By policies: [], and then it fails if one does."""
    assert verdict("{policies: []}", MASTER).passed
    assert not verdict("{policies: []}", WORKER).passed


def test_a_pod_without_a_run_is_reported_as_such() -> None:
    """The commonest slip: the label that marks a run is missing."""
    (failure,) = verdict("{runsOn: [steady-1]}", NO_RUN).failures[:1]
    assert "not part of a run" in failure.because[0]
    assert verdict("{result: not-a-run, policies: []}", NO_RUN).passed


def test_a_pod_that_no_installation_sends_is_not_placed(wording: Wording) -> None:
    """Whatever the policies say: pods of kube-system do not come to the webhook."""
    system = "namespace: kube-system"
    failure, part = verdict("{runsOn: [spot-1]}", more=system).failures[::-1]
    assert (failure.field, failure.actual) == ("runsOn", "not-sent")
    assert part.field == "policies"
    mentions(part.because[0], "kube-system")
    wording(part.because[0])
    expected = "{result: not-sent, reason: kube-system, policies: []}"
    assert verdict(expected, more=system).passed
    assert verdict("{result: not-a-run, policies: []}", NO_RUN, system).passed


def test_a_policy_outside_the_set_is_reported_as_unknown(wording: Wording) -> None:
    """A policy that was renamed is told from one that does not match."""
    (failure,) = verdict("{policies: [workers-on-spot, old-name]}").failures
    (because,) = failure.because
    mentions(because, "old-name", "not a policy")
    wording(because)


def test_a_rejection_must_be_expected() -> None:
    """Without a word on the result the pod must be admitted."""
    zone = STEADY_WORKER
    assert not verdict("{policies: [east]}", zone, policies=EAST).passed
    rejected = "{result: rejected, reason: policy east}"
    assert verdict(rejected, zone, policies=EAST).passed
    (failure,) = verdict("{result: rejected, reason: west}", zone, policies=EAST).failures
    assert failure.field == "reason"
    assert "policy east" in failure.actual


def test_a_test_says_where_a_pod_comes_from() -> None:
    """Namespace, its labels, and who creates the pod are the case's."""
    by_name = policy(
        "here",
        "match: {namespaces: [ml-a], namespaceSelector: {matchLabels:"
        " {tier: batch, kubernetes.io/metadata.name: ml-a}}}, defaults: {nodeSelector: {a: b}}",
    )
    more = "namespace: ml-a\n  namespaceLabels: {tier: batch}"
    assert verdict("{policies: [here]}", more=more, policies=by_name).passed
    daemon = (
        "{labels: {fairlead.dev/run: r}, metadata: {ownerReferences:"
        " [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: u, controller: true}]}}"
    )
    left_alone = "{result: left-alone, reason: DaemonSet, policies: []}"
    everyone = policy("everyone", "defaults: {nodeSelector: {a: b}}")
    assert verdict(left_alone, daemon, policies=everyone).passed
    forged = verdict("{policies: [everyone]}", daemon, "user: somebody", everyone)
    assert forged.passed


def test_the_clusters_default_priority_class_counts_as_unset() -> None:
    """As in the webhook, which knows the cluster's PriorityClasses."""
    document = (
        f"{HEAD}cluster: {{defaultPriorityClass: standard}}\ntests:\n- name: it\n"
        "  pod: {labels: {fairlead.dev/run: r}, spec: {priorityClassName: standard}}\n"
        "  expect: {equals: {priorityClassName: low}}\n"
    )
    low = policy("low", "defaults: {priorityClassName: low}")
    assert verdicts(document, low)[0].passed
    assert not verdicts(document.replace("Class: standard}\ntests", "Class: other}\ntests"), low)[
        0
    ].passed


def test_policies_under_audit_can_be_tested_before_they_are_enforced() -> None:
    """They take part, change nothing, and say what they would have done."""
    audit = CLASS + policy(
        "trial",
        "enforcement: Audit, match: {roles: [worker]},"
        " requirements: {capacity: [{class: spot, mode: Prevent}]}",
    )
    pod = WORKER.replace("}}", "}, annotations: {fairlead.dev/capacity: spot=Constrain}}")
    asked = "{policies: [trial], differs: true, rejection: policy trial}"
    assert verdict(f"{{runsOn: [spot-1], audited: {asked}}}", pod, policies=audit).passed
    for wrong in ("{policies: []}", "{differs: false}", "{rejection: other}"):
        (failure,) = verdict(f"{{audited: {wrong}}}", pod, policies=audit).failures
        assert failure.field.startswith("audited.")


def test_nodes_say_what_shuts_the_pod_out(wording: Wording) -> None:
    """For each node the condition, as webhook.placement.nodes finds it."""
    lonely = policy("lonely", "defaults: {labels: {team: x}}")

    def because(pod: str) -> list[str]:
        whole = f"{{labels: {{fairlead.dev/run: r}}, spec: {{{pod}}}}}"
        (failure,) = verdict("{runsOn: []}", whole, policies=lonely).failures
        return list(failure.because)

    tainted, admitting = because("")
    mentions(tainted, "spot-1: ", "taint spot=true:NoSchedule")
    mentions(admitting, "steady-1: ", "admits")
    bound, *_ = because("nodeName: steady-1")
    mentions(bound, "spot-1: ", "nodeName steady-1")
    selecting, *_ = because("nodeSelector: {pool: steady}")
    mentions(selecting, "spot-1: ", "nodeSelector pool=steady")
    for line in (tainted, admitting, bound, selecting):
        wording(line)


def test_a_nodes_usual_labels_are_filled_in() -> None:
    """A test need not write the operating system of each node."""
    linux = policy(
        "linux",
        "requirements: {nodeSelector: {kubernetes.io/os: linux, kubernetes.io/arch: amd64}}",
    )
    pod = (
        "{labels: {fairlead.dev/run: r}, spec: {nodeSelector: {kubernetes.io/hostname: steady-1}}}"
    )
    assert verdict("{runsOn: [steady-1]}", pod, policies=linux).passed


def test_a_verdict_knows_its_line_and_its_trace() -> None:
    """What a person needs to find the test, and to see why."""
    only = verdict("{runsOn: [spot-1]}")
    assert (only.file, only.line, only.name) == ("p.test.yaml", 9, "it")
    assert [(e.field, e.outcome) for e in only.trace] == [("capacity[spot]", "set")]


EXCEPTION = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementException
metadata: {name: anna}
spec:
  policies: [workers-on-spot]
  match: {roles: [worker]}
  until: "2026-06-01T12:00:00Z"
  reason: Anna looks for a leak.
"""


def test_a_test_says_when_its_pod_comes() -> None:
    """Then exceptions are in force until their end; without a time none of them is."""
    policies = f"{WORKERS_ON_SPOT}{EXCEPTION}"
    in_time, too_late = 'now: "2026-06-01T11:59:59Z"', 'now: "2026-06-01T12:00:00Z"'
    assert not verdict("{policies: []}", more=in_time, policies=policies).failures
    for more in (too_late, ""):
        assert not verdict("{policies: [workers-on-spot]}", more=more, policies=policies).failures
    ended = "{warnings: [exception anna ended at 2026-06-01T12:00:00Z]}"
    assert not verdict(ended, more=too_late, policies=policies).failures


def test_a_failure_names_the_exception_that_set_the_policy_aside(wording: Wording) -> None:
    """It matches; whoever expects it would look for a condition that fails."""
    (failure,) = verdict(
        "{policies: [workers-on-spot]}",
        more='now: "2026-01-01T00:00:00Z"',
        policies=f"{WORKERS_ON_SPOT}{EXCEPTION}",
    ).failures
    (because,) = (each for each in failure.because if "exception" in each)
    mentions(because, "workers-on-spot", "exception anna")
    wording(because)


AUDITED = policy("tried", "enforcement: Audit, overrides: {nodeSelector: {zone: a}}")


def test_a_test_that_reaches_policies_under_audit_alone_fails(wording: Wording) -> None:
    """Nothing that is enforced took part; unless it is about Audit, or says that it is meant."""
    (failure,) = verdict("{result: unchanged}", policies=AUDITED).failures
    assert failure.field == "policies"
    mentions(failure.expected, "enforced")
    mentions(failure.because[0], "tried", "under Audit")
    wording(f"{failure.expected} | {failure.because[0]}")
    for meant in ("{policies: []}", "{audited: {differs: true}}", "{audited: {policies: [tried]}}"):
        assert verdict(meant, policies=AUDITED).passed
    assert verdict("{policies: []}", policies=AUDITED).reached == ()
    assert verdict("{audited: {differs: true}}", policies=AUDITED).reached == ("tried",)
    assert not verdict("{audited: {differs: false}}", policies=SPEND, pod=NO_RUN).passed


@pytest.mark.parametrize(
    ("labels", "more", "key"),
    [
        ("fairlead.dev/role: wroker", "", "fairlead.dev/role"),
        ("fairlead.dev/kind: expriment", "", "fairlead.dev/kind"),
        ("fairlead.dev/replica-index: one", "", "fairlead.dev/replica-index"),
        ("app: web", "namespaceLabels: {fairlead.dev/place: al}", "fairlead.dev/place"),
        ("app: web", "namespaceLabels: {fairlead.dev/kind: notebok}", "fairlead.dev/kind"),
    ],
)
def test_a_label_that_cannot_be_read_fails_the_test(
    labels: str, more: str, key: str, wording: Wording
) -> None:
    """Though a policy took part; unless the test expects the warning."""
    pod = f"{{labels: {{fairlead.dev/run: r, {labels}}}}}"
    (failure,) = verdict("{result: placed}", pod, more, policies=SPEND).failures
    assert failure.field == "labels"
    mentions(failure.actual, key)
    wording(failure.actual)
    assert verdict(f"{{warnings: [{key}]}}", pod, more, policies=SPEND).passed


def test_the_objects_of_the_cluster_change_the_pod_first() -> None:
    """As the API server does; without the class, which nodes admit the pod is unknown."""
    own = "{labels: {fairlead.dev/run: r}, spec: {runtimeClassName: kata}}"
    lonely = policy("lonely", "defaults: {labels: {team: x}}")
    tolerated = "{tolerations: [{key: spot, operator: Exists}], nodeSelector: {pool: spot}}"
    kata = f"{{kind: RuntimeClass, metadata: {{name: kata}}, handler: k, scheduling: {tolerated}}}"
    document = case("{runsOn: [spot-1]}", own)
    (read,) = verdicts(f"{document}cluster: {{objects: [{kata}]}}\n", lonely)
    assert read.passed
    (failure,) = verdict("{runsOn: [spot-1]}", own, policies=lonely).failures
    mentions(failure.actual, "unknown", "RuntimeClass kata")
    mentions(" ".join(failure.because), "cluster.objects")
