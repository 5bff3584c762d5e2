"""What is said of guards: the admission policies that enforce what the webhook cannot."""

from __future__ import annotations

from typing import Any

from tests.installation.doctor.cluster_states import by_key, configuration, seen, text_of
from tests.wording import Wording, mentions
from webhook import names
from webhook.guards import stamp_guard
from webhook.installation.doctor.guard_checks import guards
from webhook.installation.object_kinds import GUARD, GUARD_BINDING

Json = dict[str, Any]


SHIPPED = by_key(
    [
        {
            "kind": kind,
            "metadata": {"name": names.RUN_AUTHORS_GUARD},
            "spec": spec,
        }
        for kind, spec in (
            (GUARD, {"validations": [{"expression": "false"}]}),
            (GUARD_BINDING, {"policyName": names.RUN_AUTHORS_GUARD, "validationActions": ["Deny"]}),
        )
    ]
)


def test_a_guard_that_is_gone_or_changed_is_an_error(wording: Wording) -> None:
    """What the API server fills in is no change."""
    filled = {
        title: {**each, "spec": {**each["spec"], "failurePolicy": "Fail"}}
        for title, each in SHIPPED.items()
    }
    assert list(guards(seen(expected=SHIPPED, guard_objects=filled))) == []
    for title, each in filled.items():
        gone = {other: live for other, live in filled.items() if other != title}
        (finding,) = guards(seen(expected=SHIPPED, guard_objects=gone))
        assert finding.severity == "error"
        mentions(finding.what, str(title))
        wording(text_of(finding))
        changed = {**each, "spec": {**each["spec"], "validations": [], "validationActions": []}}
        found = guards(seen(expected=SHIPPED, guard_objects={**filled, title: changed}))
        assert [(each.severity, str(title) in each.what) for each in found] == [("error", True)]


def test_a_guard_that_does_nothing_is_reported(wording: Wording) -> None:
    """It looks as if it held."""
    policy, *bindings = stamp_guard(configuration()["webhooks"], deny=True)
    assert list(guards(seen(guard_objects=by_key([policy, *bindings])))) == []
    (finding,) = guards(seen(guard_objects=by_key([policy])))
    mentions(finding.what, "no binding names ValidatingAdmissionPolicy fairlead-stamp")
    wording(text_of(finding))
    for finding in guards(seen(guard_objects=by_key(bindings))):
        assert finding.severity == "error"
        mentions(finding.what, "ValidatingAdmissionPolicy fairlead-stamp, which is not there")
    audited = [
        {**each, "spec": {**each["spec"], "validationActions": ["Audit"]}} for each in bindings
    ]
    found = list(guards(seen(guard_objects=by_key([policy, *audited]))))
    assert len(found) == len(bindings)
    mentions(found[0].what, "neither denies nor warns")
