"""Data of Secrets."""

from __future__ import annotations

from webhook.kube.secrets import data_of


def test_data_is_decoded_and_invalid_base64_is_empty() -> None:
    """The API server never sends it, and nothing may end the watch."""
    assert data_of({}) == {}
    assert data_of({"data": {"a": "b25l", "b": "x"}}) == {"a": b"one", "b": b""}
