"""What is remembered of a policy, and what is no change of it."""

from __future__ import annotations

import json

from tests.controller.policies.memory import raw_policy
from webhook import names
from webhook.controller.policies.stored import stored
from webhook.policy.status_model import PolicyStatus


def test_the_text_is_what_the_webhook_reads_and_the_status_is_apart() -> None:
    """A status that is written makes no other policy."""
    before = stored(names.PLACEMENT_POLICIES, raw_policy("a"))
    raw = raw_policy("a", version=6, status={"podsDecided": 3, "later": "unknown"})
    after = stored(names.PLACEMENT_POLICIES, raw)
    assert before.seen.text == after.seen.text
    assert set(json.loads(after.seen.text)) == {"apiVersion", "kind", "metadata", "spec"}
    assert after.seen.status == PolicyStatus(pods_decided=3)
    assert after.seen.version == ("uid-a", 1)
    assert after.version == "6"
    assert after.path == "/apis/fairlead.dev/v1alpha1/placementpolicies/a/status"


def test_a_status_that_is_none_is_written_anew() -> None:
    """Whoever wrote it, it ends nothing."""
    odd = stored(names.PLACEMENT_POLICIES, raw_policy("a", status={"conditions": "many"}))
    assert odd.seen.status == PolicyStatus()
