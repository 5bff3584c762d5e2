"""What is said of what judges policies, and of policies that were left behind."""

from __future__ import annotations

from typing import Any

import pytest

from tests.installation.doctor.seen_things import deployment, judging, seen
from webhook import names, validating
from webhook.installation.doctor.certificates import trust
from webhook.installation.doctor.judgement import judgement, left_behind
from webhook.installation.doctor.seen import Seen

Json = dict[str, Any]
CLASS = """
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: spot}
spec: {nodes: [{labels: {pool: spot}}]}
"""


def from_cluster(**changes: Any) -> Seen:
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


def test_without_it_what_goes_unsaid_is_told() -> None:
    """It is no error: nothing is placed otherwise. What may not be read is not called absent."""
    (finding,) = judgement(from_cluster(judging=None))
    assert finding.severity == "warning"
    assert "policies are stored without being judged" in finding.what
    (finding,) = judgement(seen(judging=None))
    assert "policies are stored" not in finding.what
    unread = {"the validating configuration": "forbidden"}
    assert list(judgement(seen(judging=None, unread=unread))) == []


def test_an_entry_that_is_missing_is_named() -> None:
    """With what goes without it."""
    found = judging()
    (finding,) = judgement(from_cluster(judging={"webhooks": found["webhooks"][:1]}))
    assert "has no entry workloads.fairlead.dev: who creates a Job" in finding.what


def test_policies_that_nobody_could_judge_are_an_error() -> None:
    """The webhook takes files, and the entry refuses every write of an object."""
    (finding,) = judgement(seen(judging=judging()))
    assert finding.severity == "error"
    assert "none can be written" in finding.what


@pytest.mark.parametrize(
    ("changes", "severities", "words"),
    [
        ({"failurePolicy": "Ignore"}, ["warning"], "stored unjudged"),
        ({"failurePolicy": "Fail"}, ["error"], "nobody can create a workload"),
        ({"rules": []}, ["warning", "warning"], "has no rules"),
        (
            {"clientConfig": {"service": {"name": "other", "namespace": "x", "path": "/y"}}},
            ["error", "error"],
            "calls the Service x/other/y",
        ),
    ],
)
def test_fields_that_are_not_safe_are_told(
    changes: Json, severities: list[str], words: str
) -> None:
    """Each with its consequence."""
    found = list(judgement(from_cluster(judging=judging(**changes))))
    assert [each.severity for each in found] == severities
    assert all(words in each.what for each in found)


def test_other_writes_than_this_version_asks_for_are_told() -> None:
    """As after an upgrade of the programs alone."""
    found = judging()
    for entry in found["webhooks"]:
        entry["rules"] = [{**rule, "operations": ["CREATE"]} for rule in entry["rules"]]
        entry["rules"][0]["resources"] = [*entry["rules"][0]["resources"], "pods"]
    policies, workloads = judgement(from_cluster(judging=found))
    assert policies.what.startswith(f"{validating.POLICIES} asks for other writes")
    assert "it lacks DELETE capacityclasses, DELETE placement" in policies.what
    assert "it has CREATE pods beside" in workloads.what


def test_that_no_policy_can_be_written_comes_with_the_cure() -> None:
    """Of both kinds: to mend it, and to do without."""
    words = 'failed calling webhook "policies.fairlead.dev": no endpoints available'
    (finding,) = judgement(from_cluster(refused_policies=words))
    assert finding.what == f"no policy can be written: {words}"
    assert "kubectl delete validatingwebhookconfiguration fairlead" in finding.cure


def test_its_entries_need_the_bundle_too() -> None:
    """An entry without one is asked in vain."""
    found = judging()
    del found["webhooks"][0]["clientConfig"]["caBundle"]
    (finding,) = trust(from_cluster(judging=found))
    assert finding.severity == "error"
    assert finding.what.startswith(f"{validating.POLICIES} has no caBundle")


def test_policies_that_were_left_in_the_config_map_are_missed() -> None:
    """Those that are objects are not; that it is not read any more is worth knowing."""
    files = {"left_files": {"a.yaml": CLASS.encode()}}
    (finding,) = left_behind(from_cluster(**files))
    assert finding.severity == "warning"
    assert finding.what.startswith("CapacityClass spot of ConfigMap")
    there = {f"{names.CAPACITY_CLASSES}/spot": b"{}"}
    (known,) = left_behind(from_cluster(**files, policies=there))
    assert known.severity == "note"
    garbled = {"left_files": {"a.yaml": b"kind: none"}}
    assert [each.severity for each in left_behind(from_cluster(**garbled))] == ["note"]
    assert list(left_behind(seen(**files))) == []
    assert list(left_behind(from_cluster())) == []
