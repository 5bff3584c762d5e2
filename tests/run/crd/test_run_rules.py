"""What a rule about all frameworks together rests on."""

from __future__ import annotations

import pytest

from webhook.run.crd.run_rules import single_roles
from webhook.run.rendezvous.framework import Roles


def test_a_role_that_is_single_here_and_not_there_is_an_error() -> None:
    """One rule speaks of the single roles of all frameworks."""
    table: dict[str | None, Roles] = {
        "tensorflow": Roles(("master", "worker"), frozenset({"master"}), (), ()),
        "mpi": Roles(("master",), frozenset(), (), ()),
    }

    with pytest.raises(ValueError, match=r"mpi .* master"):
        single_roles(table)
