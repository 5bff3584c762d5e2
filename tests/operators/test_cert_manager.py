"""cert-manager beside the overlay that asks it for the webhook's certificate."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos import injected
from tests.chaos.ledger import CREATIONS, FAILED
from tests.chaos.play_short import PlayShort
from tests.control_planes import build_before_tests
from tests.go_programs import CERT_MANAGER, module_source, obtain_program


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build cert-manager before the first test, on the first run ever."""
    build_before_tests(session, "cert_manager", lambda: obtain_program(CERT_MANAGER))


@pytest.fixture(scope="session")
def cert_manager() -> Path:
    """Its program; its source, too, is on this machine before the network is left."""
    module_source(CERT_MANAGER.module)
    return obtain_program(CERT_MANAGER)


@pytest.mark.usefixtures("cert_manager")
def test_cert_manager_s_renewals_and_absence_fail_no_creation(play_short: PlayShort) -> None:
    """Issued, injected, renewed under load; a replica starts while it is away; then it goes on."""
    tally = play_short("cert-manager")
    assert tally[CREATIONS] > 100
    assert tally[FAILED] == 0
    assert tally[injected.RENEWALS] == injected.SCENARIO.short
    assert (tally[injected.ABSENCES], tally[injected.STARTED_ALONE]) == (1, 1)
    assert tally[injected.AUTHORITIES] == 1
