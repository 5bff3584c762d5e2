"""What is said of what runs."""

from __future__ import annotations

import pytest

from tests.installation.doctor.cluster_states import (
    DEFINITION,
    configuration,
    deployment,
    seen,
    text_of,
)
from tests.wording import Wording, mentions
from webhook.installation.doctor.cluster_state import ReadKind
from webhook.installation.doctor.diagnose import diagnose
from webhook.installation.doctor.program_checks import (
    definition,
    endpoints,
    leader,
    programs,
    versions,
    watches,
)
from webhook.interception import webhooks


@pytest.mark.parametrize(
    ("server", "right"),
    [("v1.29.9", False), ("v1.30.0-gke.1", True), ("v1.36.3", True), ("v2.0.0", True), ("", True)],
)
def test_the_cluster_has_to_be_new_enough(server: str, right: bool) -> None:
    """What cannot be read is not judged."""
    severities = [each.severity for each in versions(seen(server=server))]
    assert ("error" not in severities) == right


@pytest.mark.parametrize(("server", "lacks"), [("v1.35.9", True), ("v1.36.0", False), ("", False)])
def test_a_feature_that_the_cluster_lacks_is_a_note(server: str, lacks: bool) -> None:
    """With the version that it needs, and what to do without it."""
    found = list(versions(seen(server=server)))
    assert [each.severity for each in found] == (["note"] if lacks else [])
    for each in found:
        mentions(each.what, server, "export map", "1.36")
        mentions(each.cure, "webhook")


@pytest.mark.parametrize(
    ("image", "said"),
    [
        ("fairlead:0.1.0", 0),
        ("registry.example:5000/team/fairlead:v0.1.0", 0),
        ("registry.example/fairlead:0.1.0@sha256:aa", 0),
        ("fairlead:0.2.0", 1),
        ("registry.example:5000/fairlead", 0),
        ("fairlead:git-1234", 0),
    ],
)
def test_versions_are_read_from_the_tag(image: str, said: int) -> None:
    """Tags of one's own are not compared with a release."""
    one = deployment("fairlead-controller", 2, image)
    assert len(list(versions(seen(deployments={"fairlead-controller": one})))) == said


def test_two_programs_of_two_versions_are_reported(wording: Wording) -> None:
    """Whatever the tags."""
    both = {
        "fairlead-controller": deployment("fairlead-controller", 2, "fairlead:a"),
        "fairlead-webhook": deployment("fairlead-webhook", 3, "fairlead:b"),
    }
    (finding,) = versions(seen(deployments=both))
    mentions(finding.what, "fairlead-controller is a", "fairlead-webhook is b")
    wording(text_of(finding))


def test_a_definition_is_served_and_of_this_version(wording: Wording) -> None:
    """Otherwise it says what is amiss."""
    refused = {"type": "Established", "status": "False", "message": "names conflict"}
    not_served = {**DEFINITION, "status": {"conditions": [refused]}}
    (finding,) = definition(seen(definition=not_served))
    mentions(finding.what, "Runs", "not served", "names conflict")
    wording(text_of(finding))
    versions = [{"name": "v1alpha1", "schema": {"openAPIV3Schema": {"type": "string"}}}]
    (finding,) = definition(seen(definition={**DEFINITION, "spec": {"versions": versions}}))
    assert finding.severity == "warning"


def test_no_pod_available_is_an_error_and_some_are_a_warning() -> None:
    """As long as somebody answers."""
    for available, severity in ((0, "error"), (2, "warning"), (3, None)):
        one = deployment("fairlead-webhook", 3, availableReplicas=available)
        both = {**seen().deployments, "fairlead-webhook": one}
        found = {each.severity for each in programs(seen(deployments=both))}
        assert found == ({severity} if severity else set())


def test_a_webhook_elsewhere_needs_no_deployment_here() -> None:
    """Nor endpoints."""
    entries = webhooks(url="https://192.0.2.1/mutate")
    only = {"fairlead-controller": deployment("fairlead-controller", 2)}
    elsewhere = seen(
        configuration={**configuration(), "webhooks": entries}, deployments=only, endpoints=[]
    )
    assert [*programs(elsewhere), *endpoints(elsewhere)] == []


def test_what_runs_outside_of_the_cluster_is_not_called_well(wording: Wording) -> None:
    """As in a sandbox: the controller may be there, and lead; nobody here can tell."""
    entries = webhooks(url="https://192.0.2.1/mutate")
    alone = seen(
        configuration={**configuration(), "webhooks": entries},
        deployments={},
        endpoints=[],
        leader="",
    )
    outcomes = {each.name: each for each in diagnose(alone)}
    (found,) = outcomes["programs"].findings
    assert found.severity == "note"
    mentions(found.what, "https://192.0.2.1/mutate", "outside")
    wording(found.what)
    for name in ("watches", "endpoints", "certificates", "trust", "leader", "policies"):
        assert not outcomes[name].findings, name
        assert outcomes[name].unread, name


@pytest.mark.parametrize(
    ("ready", "severity"), [((), "error"), ((False, False), "error"), ((True, False), "warning")]
)
def test_endpoints_that_are_ready_count(ready: tuple[bool, ...], severity: str) -> None:
    """One is too few to lose."""
    assert [each.severity for each in endpoints(seen(endpoints=ready))] == [severity]


def test_a_missing_leader_is_an_error() -> None:
    """Unless the Lease may not be read."""
    assert [each.severity for each in leader(seen(leader=""))] == ["error"]
    assert list(leader(seen(leader="", unread={ReadKind.LEASE: "forbidden"}))) == []


def test_a_replica_without_watch_events_is_reported() -> None:
    """Of what, and for how long; one that hears once a minute is as it should be."""
    silences = {("webhook-a", "namespaces"): 119.0, ("webhook-b", "namespaces"): 640.0}
    (found,) = watches(seen(silences=silences))
    assert found.severity == "warning"
    mentions(found.what, "webhook-b", "namespaces", "640 s")
    (found,) = watches(seen(silences={("controller-a", "pods"): float("inf")}))
    mentions(found.what, "controller-a", "pods", "since it started")
