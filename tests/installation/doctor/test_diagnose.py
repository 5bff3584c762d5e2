"""The doctor as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from tests.installation.doctor.cluster_states import (
    DEFINITION,
    FORBIDDEN,
    NOW,
    Json,
    configuration,
    deployment,
    seen,
    text_of,
)
from tests.wording import Wording, mentions
from webhook.cluster_objects.unplaced_pods import selector_query
from webhook.installation.doctor.cluster_state import (
    ClusterState,
    ReadKind,
    does_not_apply,
)
from webhook.installation.doctor.diagnose import CHECKS, diagnose
from webhook.installation.doctor.policy_checks import needed
from webhook.installation.doctor.program_checks import RUNS
from webhook.installation.manifests import render
from webhook.installation.object_kinds import key_of
from webhook.installation.rights import Right
from webhook.interception import webhooks


def test_of_a_good_installation_nothing_is_wrong() -> None:
    """At most something is worth knowing."""
    findings = [finding for outcome in diagnose(seen()) for finding in outcome.findings]
    assert {finding.severity for finding in findings} <= {"note"}


def test_every_error_and_every_warning_has_a_cure() -> None:
    """Of a cluster where nearly all is wrong."""
    bad = ClusterState(now=NOW, version="0.1.0", server="v1.20.0", configuration=configuration())
    findings = [finding for outcome in diagnose(bad) for finding in outcome.findings]
    assert len(findings) > 5
    assert all(finding.cure for finding in findings if finding.severity != "note")


def test_an_empty_cluster_is_one_finding(wording: Wording) -> None:
    """Not one for each thing that is missing, also beside a definition that `uninstall` keeps."""
    for found in ({}, {RUNS.name: DEFINITION}):
        state = ClusterState(now=NOW, version="0.1.0", server="v1.36.3", definitions=found)
        (outcome,) = diagnose(state)
        (finding,) = outcome.findings
        mentions(finding.what, "Fairlead", "not in this cluster")
        mentions(finding.cure, "fairlead install")
        wording(text_of(finding))


def test_a_check_of_what_is_not_there_does_not_pass() -> None:
    """Whatever is left of an installation; the others are as sure as ever."""

    def passed(**changes: Any) -> set[str]:
        return {each.name for each in diagnose(seen(**changes)) if not each.findings}

    assert passed() - passed(configuration=None) == {
        *("interception", "tolerations", "end to end", "selectors", "endpoints", "trust"),
    }
    assert passed() - passed(deployments={}, policies=None, serving=None) == {
        *(
            "programs",
            "watches",
            "writes",
            "certificates",
            "trust",
            "agents",
            "permissions",
            "tolerations",
            "objects",
        ),
    }


def test_a_cluster_of_which_nothing_may_be_read_is_not_called_empty() -> None:
    """Who has no rights is told that."""
    unread = {ReadKind.POD_RULES: FORBIDDEN}
    outcomes = diagnose(ClusterState(now=NOW, version="0.1.0", unread=unread))
    assert len(outcomes) == len(CHECKS)


def test_a_check_says_which_of_what_it_reads_was_not_read() -> None:
    """Other checks are as sure as ever, and all that is read is read for some check."""
    unread = {ReadKind.PODS_OF_RUNS: FORBIDDEN}
    outcomes = diagnose(ClusterState(now=NOW, version="0.1.0", unread=unread))
    assert {each.name: each.unread for each in outcomes if each.unread} == {
        "unplaced pods": {"pods of runs": FORBIDDEN}
    }
    assert {what for check in CHECKS for what in check.reads} == set(ReadKind)


def test_checks_have_names_of_their_own() -> None:
    """And each says what it looks at."""
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert all(check.judge.__doc__ for check in CHECKS)


def test_a_check_of_what_runs_outside_of_the_cluster_does_not_apply() -> None:
    """As in a sandbox; with programs in the cluster, their policies alone are not checked."""
    outside = {**configuration(), "webhooks": webhooks(url="https://192.0.2.1/mutate")}
    alone = seen(
        configuration=outside, deployments={}, endpoints=[], leader="", judging=None, policies=None
    )
    found = diagnose(alone)
    assert not any(each.unread for each in found)
    assert {each.name for each in found if does_not_apply(each.findings)} == {
        *("watches", "writes", "endpoints", "certificates", "trust", "leader", "policies"),
        *("agents", "permissions", "tolerations", "objects"),
    }
    (outcome,) = [e for e in diagnose(seen(configuration=outside)) if e.name == "policies"]
    assert does_not_apply(outcome.findings)


def test_without_the_nodes_it_is_unknown_where_a_daemon_set_runs() -> None:
    """A requirement may keep it from some of them."""
    there = seen(unread={ReadKind.NODES: FORBIDDEN})
    (outcome,) = [each for each in diagnose(there) if each.name == "agents"]
    assert [*outcome.unread] == [ReadKind.NODES]


def test_a_selector_is_written_as_queries_have_it() -> None:
    """Labels and expressions."""
    selector = {
        "matchLabels": {"a": "b"},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["d", "e"]},
            {"key": "f", "operator": "NotIn", "values": ["g"]},
            {"key": "h", "operator": "Exists"},
            {"key": "i", "operator": "DoesNotExist"},
        ],
    }
    assert selector_query(selector) == "a in (b),c in (d,e),f notin (g),h,!i"


def test_what_a_program_needs_is_what_its_roles_grant() -> None:
    """In one namespace by a Role, everywhere by a ClusterRole; by name where they say so."""
    found = needed(render().values())
    assert set(found) == {"fairlead-controller", "fairlead-webhook"}
    serving = Right("watch", "", "secrets", "fairlead-webhook-tls", "fairlead-system")
    assert serving in found["fairlead-webhook"]
    assert Right("update", "fairlead.dev", "runs/status") in found["fairlead-controller"]
    reads = ("get", "list", "watch")
    written = [each for each in found["fairlead-webhook"] if each.verb not in reads]
    assert written == [Right("create", "", "events")]


def by_helm(value: Json, release: str = "") -> Json:
    metadata = value["metadata"]
    labels = {**metadata.get("labels", {}), "app.kubernetes.io/managed-by": "Helm"}
    annotations = {"meta.helm.sh/release-name": release} if release else {}
    return {**value, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


@pytest.mark.parametrize(("release", "named"), [("placing", "placing"), ("", "RELEASE")])
def test_an_installation_of_helm_is_restored_by_helm(
    release: str, named: str, wording: Wording
) -> None:
    """Fairlead's own command would leave the release with objects that it does not know."""
    entries = configuration(timeoutSeconds=30, reinvocationPolicy="Never", failurePolicy="Ignore")
    bad = seen(
        deployments={"fairlead-controller": by_helm(deployment("fairlead-controller", 2), release)},
        configuration=entries,
        judging=None,
        definitions={},
        expected={key_of("ValidatingAdmissionPolicy", "guard"): {"spec": {}}},
    )
    findings = [finding for outcome in diagnose(bad) for finding in outcome.findings]
    cures = {finding.cure for finding in findings if "install" in finding.cure}
    assert not cures
    helm = sorted({finding.cure for finding in findings if "helm" in finding.cure})
    command = f"helm upgrade {named} CHART --namespace fairlead-system --reset-then-reuse-values"
    assert command in helm
    assert all(command in each for each in helm)
    wording("\n".join(helm))
