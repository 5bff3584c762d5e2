"""Who leads, and since when nobody has."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from tests.wording import mentions
from webhook.cluster_objects.heartbeat import holder, silence
from webhook.errors import ClusterError
from webhook.kube.client import Client

NOW = datetime(2026, 3, 1, 2, 0, 30, tzinfo=UTC)
OLD = "2026-03-01T01:59:00.000000Z"
FRESH = "2026-03-01T02:00:25.000000Z"


def lease(renewed: str, who: str = "somebody") -> dict[str, Any]:
    """A Lease as the API server has it."""
    spec = {"holderIdentity": who, "renewTime": renewed}
    return {"metadata": {"resourceVersion": "1"}, "spec": spec}


@pytest.mark.parametrize(
    ("renewed", "leads"),
    [
        (FRESH, "somebody"),
        ("2026-03-01T02:00:45.000000Z", "somebody"),
        (OLD, ""),
        ("", ""),
        ("soon", ""),
        ("2026-03-01T02:00:25", ""),
    ],
)
def test_who_renewed_the_lease_lately_leads(renewed: str, leads: str) -> None:
    """Also by a clock that is ahead; nobody does whose last renewal cannot be read."""
    assert holder(lease(renewed), NOW) == leads


def said(found: dict[str, Any] | ClusterError | None) -> str:
    """What is said to people if the API server answers so."""

    class Answers:
        async def find(self, _path: str) -> dict[str, Any] | None:
            if isinstance(found, ClusterError):
                raise found
            return found

    return asyncio.run(silence(cast("Client", Answers()), NOW))


def test_statuses_are_as_of_the_last_renewal() -> None:
    mentions(said(lease(OLD)), "as of 2026-03-01T01:59:00:", "no controller has looked since")
    mentions(said(lease(OLD, who="")), "as of 2026-03-01T01:59:00:")
    mentions(said(lease("")), "as of an unknown time:")


@pytest.mark.parametrize(
    "found",
    [lease(FRESH), lease(FRESH, who=""), None, ClusterError("forbidden", status=403)],
    ids=["led", "handed over", "no Lease", "not read"],
)
def test_nothing_is_said_of_a_controller_that_leads_or_is_not_known(found: Any) -> None:
    """A new leader takes over within seconds of a release."""
    assert said(found) == ""
