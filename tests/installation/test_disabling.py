"""Who leads, and so will put the rules back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from webhook.installation.disabling import holder

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
