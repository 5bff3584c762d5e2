"""The overlays of an installation, alone and together."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest

from webhook.errors import InstallationError
from webhook.installation.manifests import (
    DEFAULT,
    INTERCEPTION,
    overlays,
    render,
)

# Each changes the guard of the stamp in its own way.
CONTRADICT = {"fail-open-guarded", "fail-open-guarded-deny"}


@pytest.mark.parametrize("names", [*combinations(overlays(), 2)], ids="+".join)
def test_two_overlays_change_what_each_changes_in_either_order(names: tuple[str, str]) -> None:
    """Of an object that both change, each change is there."""
    if {*names} >= CONTRADICT:
        with pytest.raises(InstallationError, match="differently: give one of them"):
            render(names)
        return
    found, base = render(names), render()
    assert found == render(names[::-1])
    for name in names:
        own = render((name,))
        assert not (base.keys() - own.keys()) & found.keys()
        assert own.keys() - base.keys() <= found.keys()
        for key in own.keys() & found.keys():
            (other,) = {*names} - {name}
            if render((other,)).get(key) == base.get(key):
                assert found[key] == own[key]


@pytest.mark.parametrize("names", [*permutations((DEFAULT, "fail-open-guarded", "monitoring"))])
def test_an_installation_that_fails_open_does_so_beside_other_overlays(
    names: tuple[str, ...],
) -> None:
    """Whatever stands first: monitoring and default leave the configuration as it is."""
    entries = render(names)[INTERCEPTION]["webhooks"]
    assert {each["failurePolicy"] for each in entries} == {"Ignore"}
