"""Who leads, and so will put the rules back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from webhook.installation.webhook_configuration import holder, written_at

NOW = datetime(2026, 3, 1, 2, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("renewed", "leads"),
    [
        ("2026-03-01T02:00:25.000000Z", "somebody"),
        ("2026-03-01T02:00:45.000000Z", "somebody"),
        ("2026-03-01T01:59:00.000000Z", ""),
        ("", ""),
        ("soon", ""),
        ("2026-03-01T02:00:25", ""),
    ],
)
def test_who_renewed_the_lease_lately_leads(renewed: str, leads: str) -> None:
    """Also by a clock that is ahead; nobody does whose last renewal cannot be read."""
    lease = {
        "metadata": {"resourceVersion": "1"},
        "spec": {"holderIdentity": "somebody", "renewTime": renewed},
    }
    assert holder(lease, NOW) == leads


def test_the_api_servers_clock_shows_in_what_it_stored() -> None:
    """By the last change of ours; others' changes have times too."""
    fields = [
        {"manager": "fairlead-suspension", "time": "2026-03-01T02:00:00Z"},
        {"manager": "fairlead-suspension", "time": "2026-03-01T02:00:29Z"},
        {"manager": "kubectl", "time": "2026-03-01T03:00:00Z"},
    ]
    found = written_at({"metadata": {"managedFields": fields}})
    assert found == datetime(2026, 3, 1, 2, 0, 29, tzinfo=UTC)
    assert written_at({"metadata": {}}) is None
