"""When the API server stored a change of ours."""

from __future__ import annotations

from datetime import UTC, datetime

from webhook.installation.webhook_configuration import written_at

NOW = datetime(2026, 3, 1, 2, 0, 30, tzinfo=UTC)


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
