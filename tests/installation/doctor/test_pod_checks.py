"""What is said of pods, and of policies."""

from __future__ import annotations

import json

import pytest

from tests.installation.doctor.cluster_states import configuration, deployment, seen, text_of
from tests.objects import an_object
from tests.wording import Wording, mentions
from webhook.evaluation.sending import selects
from webhook.installation.doctor.cluster_state import Unplaced
from webhook.installation.doctor.pod_checks import end_to_end, selector_query, unplaced
from webhook.installation.doctor.policy_checks import policies
from webhook.installation.probe import Probe
from webhook.interception import webhooks
from webhook.policy.load import load

LATER = "2026-02-02T00:00:00Z"
POLICY = "apiVersion: fairlead.dev/v1alpha1\nkind: PlacementPolicy\nmetadata: {name: p}\n"


@pytest.mark.parametrize(
    ("words", "severity"),
    [
        ('admission webhook "pods-0.fairlead.dev" denied the request: no', "warning"),
        ('failed calling webhook "pods-0.fairlead.dev": no endpoints', "error"),
        ("exceeded quota", "warning"),
        ("", "error"),
    ],
)
def test_a_pod_that_comes_back_without_a_stamp(words: str, severity: str) -> None:
    """Who refused it makes the difference."""
    probe = Probe("default", stamped=False, words=words)
    assert [each.severity for each in end_to_end(seen(probe=probe))] == [severity]


def test_a_pod_that_policies_make_invalid_is_an_error() -> None:
    """Every pod of every run is refused, although the webhook works."""
    words = 'Pod "fairlead-probe" is invalid: spec.securityContext.seLinuxChangePolicy: Unsupported'
    probe = Probe("default", stamped=False, words=words, invalid=True)
    (finding,) = end_to_end(seen(probe=probe))
    assert finding.severity == "error"
    mentions(finding.what, "refuses a plain pod", "as policies", "seLinuxChangePolicy")


def test_without_rules_no_stamp_is_expected() -> None:
    """That is told by the configuration's own check."""
    probe = Probe("default", stamped=False)
    assert list(end_to_end(seen(probe=probe, configuration=configuration(rules=[])))) == []
    assert list(end_to_end(seen(probe=probe, configuration=None))) == []


def test_pods_without_a_stamp_are_reported_by_namespace(wording: Wording) -> None:
    """How many, and the first few names."""
    many = [Unplaced("b", f"p{number}", LATER) for number in range(5)]
    one, other = unplaced(seen(unplaced=[*many, Unplaced("a", "q", LATER)]))
    mentions(one.what, " a ", "1 pod ", "no stamp", ": q.")
    mentions(other.what, " b ", "5 pods ", "no stamp", ": p0, p1, p2 and 2 more.")
    wording(text_of(one))
    wording(text_of(other))


def test_pods_older_than_the_configuration_are_noted(wording: Wording) -> None:
    """They were there before, or the configuration was gone for a time: nobody can tell."""
    (finding,) = unplaced(seen(unplaced=[Unplaced("b", "p", "2026-01-01T00:00:00Z")]))
    assert finding.severity == "note"
    mentions(finding.what, "1 pod ", "older", "b/p")
    wording(text_of(finding))


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


def test_which_namespaces_an_entry_reaches() -> None:
    """By its own selector."""
    marked, whole = webhooks()
    name = "kubernetes.io/metadata.name"
    assert selects(marked, "namespaceSelector", {name: "research"})
    assert not selects(marked, "namespaceSelector", {name: "kube-system"})
    assert not selects(whole, "namespaceSelector", {name: "research"})
    assert selects(whole, "namespaceSelector", {name: "research", "fairlead.dev/place": "all"})


def test_policies_are_judged_as_the_webhook_does() -> None:
    """Errors with their places; many errors are not all told."""
    good = {"a.yaml": f"{POLICY}spec: {{defaults: {{nodeSelector: {{a: b}}}}}}\n".encode()}
    assert len(load(good).policies.policies) == 1
    assert [each.severity for each in policies(seen(policies=good))] == []
    first, *_ = policies(seen(policies={"a.yaml": b"kind: PlacementPolicy\n"}))
    assert "a.yaml:1:1" in first.what
    bad = {f"{number}.yaml": b"kind: Nothing\n" for number in range(9)}
    said = list(policies(seen(policies=bad)))
    assert (len(said), said[-1].severity) == (6, "note")


def test_no_policies_at_all_are_an_error_and_none_in_the_map_a_note() -> None:
    """Without the ConfigMap no pod of the webhook starts."""
    assert [each.severity for each in policies(seen(policies=None))] == ["error"]
    # Without the webhook nobody knows where it would take them from.
    assert not list(policies(seen(policies=None, deployments={})))
    assert [each.severity for each in policies(seen(policies={}))] == ["note"]


def test_policies_of_the_cluster_are_judged_if_the_webhook_takes_those(wording: Wording) -> None:
    """By what its Deployment says; a finding names the object."""
    webhook = deployment("fairlead-webhook", 3)
    (container,) = webhook["spec"]["template"]["spec"]["containers"]
    container["args"] = ["serve", "--policies-from-cluster"]
    deployments = {"fairlead-webhook": webhook}
    (absent,) = policies(seen(deployments=deployments, policies=None))
    assert (absent.severity, "manifests/crds" in absent.cure) == ("error", True)
    (empty,) = policies(seen(deployments=deployments, policies={}))
    mentions(empty.what, "cluster", "no policy")
    wording(text_of(empty))
    spec = {"overrides": {"capacity": [{"class": "spot", "mode": "Allow"}]}}
    document = an_object("fairlead.dev/v1alpha1", "PlacementPolicy", "setting", spec)
    objects = {"placementpolicies/setting": json.dumps(document).encode()}
    (wrong,) = policies(seen(deployments=deployments, policies=objects))
    mentions(wrong.what, "placementpolicies/setting", "spec.overrides.capacity[0].class", "'spot'")
