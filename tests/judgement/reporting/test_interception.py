"""A source tells whether the webhook configuration selects its pods."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from tests.cli.test_added_source import SOURCE
from tests.fast_yaml import load_yaml
from tests.wording import Wording, mentions
from webhook import names
from webhook.crd.conditions import ConditionUpdate
from webhook.interception import DEFAULT_SOURCES, webhooks
from webhook.judgement.reporting.interception import interception, unsent_marks
from webhook.judgement.reporting.statuses import summary
from webhook.policy.load import load
from webhook.sources.marks import Mark
from webhook.suspension import suspend

Json = dict[str, Any]
ACME: Json = load_yaml(SOURCE)
TABLE = load({"a.yaml": SOURCE.encode()}).policies.sources


def configured(*sources: str) -> Json:
    """The webhook configuration for these sources."""
    entries = webhooks({*DEFAULT_SOURCES, *sources}, table=TABLE)
    return {"metadata": {"name": "fairlead", "resourceVersion": "1"}, "webhooks": entries}


def told(configuration: Json | None, spec: Json = ACME["spec"]) -> ConditionUpdate:
    (found,) = interception(spec, "acme", configuration)
    return found


def test_the_condition_follows_the_configuration(wording: Wording) -> None:
    """With the cure while its pods are not sent."""
    assert told(configured("acme")).status == "True"
    for configuration in (configured(), configured("jobset"), {}):
        missing = told(configuration)
        assert (missing.status, missing.reason) == ("False", "NotSelected")
        mentions(missing.message, "acme.example.com/job", "fairlead install --source acme")
    wording(missing.message)
    assert told(None)[1:3] == ("Unknown", "NotRead")


def test_a_disabled_webhook_is_another_reason() -> None:
    """Then no pod is sent, and the cure is another."""
    found = configured("acme")
    disabled = {**found, **suspend(found, datetime(2026, 12, 1, tzinfo=UTC))}
    disabled["metadata"] = {**found["metadata"], **disabled["metadata"]}
    assert told(disabled)[1:3] == ("False", "Disabled")


def test_a_source_without_marks_has_nothing_to_intercept() -> None:
    """It only describes kinds."""
    assert told({}, {"system": "x", "kinds": []})[1:3] == ("Unknown", "NoMarks")


@pytest.mark.parametrize(
    ("mark", "selector", "sent"),
    [
        (Mark("a"), {"matchLabels": {"a": "b"}}, False),
        (Mark("a", "b"), {"matchLabels": {"a": "b"}}, True),
        (Mark("a", "b"), {"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        (Mark("a"), {"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}, False),
        (Mark("a"), {}, False),
    ],
)
def test_an_entry_selects_a_mark_by_its_own_label(mark: Mark, selector: Json, sent: bool) -> None:
    """An entry for whole namespaces is none for the mark."""
    entries = [{"name": "x", "rules": [{}], "objectSelector": selector}]
    assert (unsent_marks([mark], entries) == []) is sent
    assert unsent_marks([mark], [{**entries[0], "rules": []}]) == [mark]


def test_the_summary_has_marks_or_else_kinds() -> None:
    """As `kubectl get` shows a line."""

    def line(spec: Json) -> str:
        return summary(names.RUN_SOURCES, orjson.dumps({"spec": spec}))

    assert line(ACME["spec"]) == "acme.example.com/job"
    marks = [{"label": "a", "value": "b"}, {"label": "c"}]
    assert line({"identity": {"marks": marks}}) == "a=b, c"
    assert line({"kinds": ACME["spec"]["kinds"]}) == "Training"
