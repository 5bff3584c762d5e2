"""The doctor says of policies what `fairlead check` says of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import orjson
import pytest

from tests.installation.doctor.cluster_states import (
    NOW,
    configuration,
    deployment,
    judging,
    seen,
    text_of,
)
from tests.judgement.together.test_warnings import policy, pool
from tests.policy.test_model import an_exception
from tests.wording import Wording, mentions
from webhook import names, validating
from webhook.installation.doctor.cluster_state import ClusterState, Finding, ReadKind
from webhook.installation.doctor.diagnose import diagnose
from webhook.installation.doctor.policy_checks import judgement, policies
from webhook.installation.doctor.program_checks import trust
from webhook.interception import webhooks
from webhook.times import to_second

ZONES = (policy("one", requirements=pool("a")), policy("two", requirements=pool("b")))
Json = dict[str, Any]
CLASS = """
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: spot}
spec: {nodes: [{labels: {pool: spot}}]}
"""


def found_in(*documents: object) -> list[Finding]:
    """What is said of policies that are files of the ConfigMap."""
    text = b"\n---\n".join(map(orjson.dumps, documents))
    return list(policies(seen(policies={"policies.yaml": text})))


def test_a_set_that_rejects_every_pod_is_an_error_though_it_serves() -> None:
    """As one may be stored that an earlier version took."""
    (finding,) = found_in(*ZONES)
    assert finding.severity == "error"
    mentions(finding.what, "every run", "one requires 'a'", "two requires 'b'")
    mentions(finding.cure, "the set serves with it")


def test_what_keeps_a_set_from_loading_says_that_the_last_good_one_serves() -> None:
    """And nothing of a set that there is not."""
    (finding,) = found_in(policy("p", defaults={"capacity": [{"class": "no", "mode": "Allow"}]}))
    mentions(finding.cure, "the last good set is used")


def test_warnings_about_combined_policies_are_reported() -> None:
    """By the same judgement as a check's."""
    level = (policy("a", match={"roles": ["worker"]}, overrides=pool("a")),)
    (finding,) = found_in(*level, policy("b", overrides=pool("b")))
    assert finding.severity == "warning"
    mentions(finding.what, "equal priority")


def test_an_exception_that_any_author_can_take_is_reported() -> None:
    """It selects by a label alone, which whoever creates a pod may write."""
    taken = {"matchLabels": {"debug": "anna"}}
    until = to_second(NOW + timedelta(days=1))
    base = policy("p", defaults=pool("a"))
    (finding,) = found_in(
        base, an_exception(policies=["p"], match={"podSelector": taken}, until=until)
    )
    assert finding.severity == "warning"
    mentions(finding.what, "spec.match", "the author of any pod", "namespaceSelector")
    where = {"podSelector": taken, "namespaces": ["a"]}
    assert found_in(base, an_exception(policies=["p"], match=where, until=until)) == []


def test_what_a_webhook_outside_of_the_cluster_serves_is_unknown() -> None:
    """Whatever is installed in the cluster beside it: nobody has looked at its policies."""
    entries = webhooks(url="https://192.0.2.1/mutate")
    outside = seen(configuration={**configuration(), "webhooks": entries})
    (outcome,) = [each for each in diagnose(outside) if each.name == "policies"]
    assert (outcome.findings, outcome.unread) == ((), (ReadKind.SERVED,))


def from_cluster(**changes: Any) -> ClusterState:
    """A good installation whose policies are objects, but for the changes."""
    webhook = deployment(names.WEBHOOK, 3)
    (container,) = webhook["spec"]["template"]["spec"]["containers"]
    container["args"] = ["serve", "--policies-from-cluster"]
    programs = {names.CONTROLLER: deployment(names.CONTROLLER, 2), names.WEBHOOK: webhook}
    return seen(**{"judging": judging(), "deployments": programs, **changes})


def test_what_install_brings_is_right() -> None:
    """From the cluster and from files."""
    assert list(judgement(from_cluster())) == []
    assert list(judgement(seen())) == []


def test_a_missing_validation_is_reported_with_its_effect(wording: Wording) -> None:
    """It is no error: nothing is placed differently. What may not be read is not called absent."""
    (finding,) = judgement(from_cluster(judging=None))
    assert finding.severity == "warning"
    mentions(finding.what, "policies", "without validation")
    wording(text_of(finding))
    (finding,) = judgement(seen(judging=None))
    assert "policies" not in finding.what
    wording(text_of(finding))
    unread = {ReadKind.JUDGING: "forbidden"}
    assert list(judgement(seen(judging=None, unread=unread))) == []


def test_an_entry_that_is_missing_is_named(wording: Wording) -> None:
    """With what goes without it."""
    found = judging()
    (finding,) = judgement(from_cluster(judging={"webhooks": found["webhooks"][:1]}))
    mentions(finding.what, "no entry workloads.fairlead.dev", "Job")
    wording(text_of(finding))


def test_policies_without_validation_are_an_error(wording: Wording) -> None:
    """The webhook takes files, and the entry refuses every write of an object."""
    (finding,) = judgement(seen(judging=judging()))
    assert finding.severity == "error"
    mentions(finding.what, "none can be written")
    wording(text_of(finding))


@pytest.mark.parametrize(
    ("changes", "severities", "facts"),
    [
        ({"failurePolicy": "Ignore"}, ["warning"], ["Ignore", "unjudged"]),
        ({"failurePolicy": "Fail"}, ["error"], ["Fail", "no workload can be created"]),
        ({"rules": []}, ["warning", "warning"], ["no rules"]),
        (
            {"clientConfig": {"service": {"name": "other", "namespace": "x", "path": "/y"}}},
            ["error", "error"],
            ["Service x/other/y"],
        ),
    ],
    ids=["ignored", "failing", "no rules", "elsewhere"],
)
def test_fields_that_are_not_safe_are_reported(
    changes: Json, severities: list[str], facts: list[str], wording: Wording
) -> None:
    """Each with its consequence."""
    found = list(judgement(from_cluster(judging=judging(**changes))))
    assert [each.severity for each in found] == severities
    for each in found:
        mentions(each.what, *facts)
        wording(text_of(each))


def test_other_writes_than_this_version_asks_for_are_reported(wording: Wording) -> None:
    """As after an upgrade of the programs alone."""
    found = judging()
    for entry in found["webhooks"]:
        entry["rules"] = [{**rule, "operations": ["CREATE"]} for rule in entry["rules"]]
        entry["rules"][0]["resources"] = [*entry["rules"][0]["resources"], "pods"]
    policies, workloads = judgement(from_cluster(judging=found))
    assert policies.what.startswith(f"{validating.POLICIES} ")
    mentions(policies.what, "lacks DELETE capacityclasses, DELETE placement")
    assert workloads.what.startswith(f"{validating.WORKLOADS} ")
    mentions(workloads.what, "lacks UPDATE cronjobs, ", "has CREATE pods")
    wording(text_of(policies))
    wording(text_of(workloads))


def test_that_no_policy_can_be_written_comes_with_the_cure(wording: Wording) -> None:
    """Of both kinds: to mend it, and to do without."""
    words = 'failed calling webhook "policies.fairlead.dev": no endpoints available'
    (finding,) = judgement(from_cluster(refused_policies=words))
    mentions(finding.what, "no policy can be written", words)
    mentions(finding.cure, "kubectl delete validatingwebhookconfiguration fairlead")
    wording(text_of(finding))


def test_its_entries_need_the_bundle_too(wording: Wording) -> None:
    """An entry without one is asked in vain."""
    found = judging()
    del found["webhooks"][0]["clientConfig"]["caBundle"]
    (finding,) = trust(from_cluster(judging=found))
    assert finding.severity == "error"
    mentions(finding.what, validating.POLICIES, "no caBundle")
    wording(text_of(finding))
