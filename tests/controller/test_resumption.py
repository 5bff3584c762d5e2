"""The webhook's rules come back by themselves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from tests.controller.runs import refused
from tests.kube.fake_api import until
from webhook import names
from webhook.controller.resumption import CHECK_SECONDS, CONFLICT_RETRY_SECONDS, Resumption
from webhook.errors import NotLeading
from webhook.interception import rules, webhooks
from webhook.kube.client import Client
from webhook.kube.writer import Writer
from webhook.suspension import suspend

Json = dict[str, Any]
NOW = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)


class Stored:
    """The one object, for client and writer; merge patches hold for its version alone."""

    def __init__(self) -> None:
        metadata = {"name": "fairlead", "resourceVersion": "1"}
        self.object: Json | None = {"metadata": metadata, "webhooks": webhooks()}
        self.now = NOW
        self.writes = 0
        self.refusal: Exception | None = None
        self.behind: Json | None = None
        self.resumption = Resumption(cast(Client, self), cast(Writer, self), clock=lambda: self.now)

    async def get(self, path: str) -> Json:
        assert path.endswith("/mutatingwebhookconfigurations/fairlead")
        if self.object is None:
            raise refused(404, "NotFound")
        return deepcopy(self.behind or self.object)

    async def patch(
        self, path: str, body: Json, patch_type: str, *, query: Mapping[str, str]
    ) -> Json:
        assert (path.rpartition("/")[2], patch_type) == ("fairlead", "merge")
        assert query == {"fieldManager": "fairlead-suspension"}
        if self.refusal:
            raise self.refusal
        return self.write(body)

    def write(self, body: Json) -> Json:
        assert self.object
        if body["metadata"]["resourceVersion"] != self.object["metadata"]["resourceVersion"]:
            raise refused(409, "Conflict")
        self.writes += 1
        kept = {**self.object["metadata"].get("annotations", {}), **body["metadata"]["annotations"]}
        self.object["metadata"] |= {
            "annotations": {key: value for key, value in kept.items() if value is not None},
            "resourceVersion": str(int(self.object["metadata"]["resourceVersion"]) + 1),
        }
        self.object["webhooks"] = body["webhooks"]
        return self.object

    def disable(self, minutes: float) -> None:
        assert self.object
        self.write(suspend(self.object, self.now + timedelta(minutes=minutes)))
        self.writes = 0

    def look(self) -> float:
        return asyncio.run(self.resumption.resume_if_due())

    def rules(self) -> list[list[Json]]:
        assert self.object
        return [each["rules"] for each in self.object["webhooks"]]


@pytest.fixture
def stored() -> Stored:
    """An installed webhook configuration."""
    return Stored()


def test_what_is_not_disabled_is_never_written(stored: Stored) -> None:
    """Nor is what is not there."""
    assert stored.look() == CHECK_SECONDS
    stored.object = None
    assert stored.look() == CHECK_SECONDS
    assert stored.writes == 0


def test_rules_come_back_when_the_time_is_over(stored: Stored) -> None:
    """The next look is no later than that."""
    stored.disable(minutes=15)
    assert stored.look() == CHECK_SECONDS
    stored.now += timedelta(minutes=14, seconds=58)
    assert stored.look() == pytest.approx(2)
    assert stored.writes == 0
    stored.now += timedelta(seconds=2)
    assert stored.look() == CHECK_SECONDS
    assert stored.rules() == [rules(), rules()]
    stored.look()
    assert stored.writes == 1


def test_a_clock_that_was_set_is_believed(stored: Stored) -> None:
    """At each look: no timer runs until then."""
    stored.disable(minutes=15)
    stored.look()
    stored.now += timedelta(hours=1)
    stored.look()
    assert stored.rules() == [rules(), rules()]


def test_a_garbled_time_has_them_back_at_once(
    stored: Stored, caplog: pytest.LogCaptureFixture
) -> None:
    """And says what was wrong."""
    stored.disable(minutes=15)
    assert stored.object
    stored.object["metadata"]["annotations"][names.DISABLED_UNTIL] = "tomorrow"
    stored.look()
    assert stored.rules() == [rules(), rules()]
    assert "'tomorrow'" in caplog.text


def test_lost_rules_are_reported_once(stored: Stored, caplog: pytest.LogCaptureFixture) -> None:
    """While the time runs, so that somebody may know better than we do; then ours are put back."""
    stored.disable(minutes=15)
    assert stored.object
    del stored.object["metadata"]["annotations"][names.DISABLED_RULES]
    stored.look()
    stored.look()
    assert stored.writes == 0
    assert caplog.text.count("were not saved") == 1
    stored.now += timedelta(minutes=15)
    stored.look()
    assert stored.rules() == [rules(), rules()]


def test_applying_the_manifests_again_enables_it(
    stored: Stored, caplog: pytest.LogCaptureFixture
) -> None:
    """Rules that are back stay back, and the annotations go at once."""
    stored.disable(minutes=15)
    assert stored.object
    stored.object["webhooks"] = webhooks()
    stored.look()
    assert stored.object["metadata"]["annotations"] == {}
    assert stored.rules() == [rules(), rules()]
    assert "by others" in caplog.text


def test_what_changed_meanwhile_is_looked_at_again_soon(stored: Stored) -> None:
    """Nothing is written over what was not read."""
    stored.disable(minutes=1)
    stored.behind = deepcopy(stored.object)
    stored.disable(minutes=30)
    stored.now += timedelta(minutes=2)
    assert stored.look() == CONFLICT_RETRY_SECONDS
    stored.behind = None
    assert stored.look() == CHECK_SECONDS
    assert (stored.writes, stored.rules()) == (0, [[], []])


def test_nothing_is_written_without_the_lease(stored: Stored) -> None:
    """Who has it will do it."""
    stored.disable(minutes=1)
    stored.now += timedelta(minutes=2)
    stored.refusal = NotLeading("not now")
    assert stored.look() == CHECK_SECONDS
    assert stored.rules() == [[], []]


def test_a_refusal_is_reported_once(stored: Stored, caplog: pytest.LogCaptureFixture) -> None:
    """And tried again for as long as it takes."""
    caplog.set_level(logging.WARNING)
    stored.disable(minutes=1)
    stored.now += timedelta(minutes=2)
    stored.refusal = refused(403, "Forbidden", "no")
    stored.look()
    stored.look()
    assert caplog.text.count("it is unknown") == 1
    stored.refusal = None
    stored.look()
    assert stored.rules() == [rules(), rules()]


async def test_it_goes_on_until_it_leads_no_more(stored: Stored) -> None:
    """Look after look."""
    stored.resumption = Resumption(
        cast(Client, stored), cast(Writer, stored), period=0.001, clock=lambda: stored.now
    )
    task = asyncio.create_task(stored.resumption.lead())
    stored.disable(minutes=1)
    stored.now += timedelta(minutes=2)
    await until(lambda: stored.writes > 0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


def test_the_last_moment_is_not_waited_for_in_a_tight_loop(stored: Stored) -> None:
    """Some looks before it is over are enough."""
    stored.disable(minutes=1)
    stored.now += timedelta(minutes=1, milliseconds=-1)
    assert stored.look() == CONFLICT_RETRY_SECONDS
