"""The doctor says of policies what `fairlead check` says of them."""

from __future__ import annotations

import orjson

from tests.installation.doctor.seen_things import configuration, seen
from tests.policy.together.test_warnings import policy, pool
from tests.wording import mentions
from webhook.installation.doctor.cluster_state import Read
from webhook.installation.doctor.diagnose import diagnose
from webhook.installation.doctor.findings import Finding
from webhook.installation.doctor.policies import policies
from webhook.interception import webhooks

ZONES = (policy("one", requirements=pool("a")), policy("two", requirements=pool("b")))


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
    mentions(finding.cure, "the last good set serves")


def test_warnings_of_policies_beside_each_other_are_told() -> None:
    """By the same judgement as a check's."""
    level = (policy("a", match={"roles": ["worker"]}, overrides=pool("a")),)
    (finding,) = found_in(*level, policy("b", overrides=pool("b")))
    assert finding.severity == "warning"
    mentions(finding.what, "equal priority")


def test_what_a_webhook_outside_of_the_cluster_serves_is_unknown() -> None:
    """Whatever is installed in the cluster beside it: nobody has looked at its policies."""
    entries = webhooks(url="https://192.0.2.1/mutate")
    outside = seen(configuration={**configuration(), "webhooks": entries})
    (outcome,) = [each for each in diagnose(outside) if each.name == "policies"]
    assert (outcome.findings, outcome.unread) == ((), (Read.SERVED,))
