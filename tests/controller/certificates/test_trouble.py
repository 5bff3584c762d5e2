"""What went wrong, by name and in words."""

from __future__ import annotations

import pytest

from webhook.controller.certificates.keeper import in_words, kind_of
from webhook.controller.certificates.metrics import ERRORS
from webhook.errors import ClusterError

CURES = {409: "", 403: "needs this right", 422: "delete it", 404: "", 503: ""}


@pytest.mark.parametrize("status", [None, *CURES])
def test_every_error_has_one_of_the_metrics_names(status: int | None) -> None:
    """So that their number is bounded."""
    assert kind_of(ClusterError("words", status=status)) in ERRORS


@pytest.mark.parametrize("status", CURES)
def test_the_servers_words_come_first_and_then_the_cure(status: int) -> None:
    """If there is one."""
    words = in_words(ClusterError("its own words", status=status))
    assert words.startswith("its own words")
    assert CURES[status] in words
    assert (words == "its own words") == (not CURES[status])
