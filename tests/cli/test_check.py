"""`fairlead check` with what a cluster has; golden/sessions/ has that of files."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.policy_tests.writing import policy
from tests.wording import Wording, mentions
from webhook.policy.policy_documents import parse
from webhook.questions import policy_check as check_report


def test_a_class_that_the_cluster_does_not_have_is_an_error(wording: Wording) -> None:
    """At its place, with the one that may be meant."""
    text = policy("low", "overrides: {priorityClassName: lwo, runtimeClassName: gvisor}")
    documents = parse({"low.yaml": text.encode()})
    there: dict[str, dict[str, Any]] = {
        "PriorityClass": {"low": {}, "high": {}},
        "RuntimeClass": {"gvisor": {}},
    }
    given = check_report.CheckInput(["low.yaml"], documents, None, there)
    checked = check_report.check(given, datetime.now(UTC))
    assert checked is not None
    (found,) = checked.findings
    assert (found.severity, found.line, found.path) == (
        "error",
        4,
        "spec.overrides.priorityClassName",
    )
    mentions(found.message, "PriorityClass", "'lwo'", "'low'")
    wording(found.message)
    assert not [*check_report.notes(given, checked)]
