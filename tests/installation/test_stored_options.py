"""The options of an installation, stored and read again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wording import Wording, mentions
from webhook import names
from webhook.errors import InstallationError
from webhook.installation.choices import Choices, adapted
from webhook.installation.manifests import CONTROLLER, components, overlays
from webhook.installation.stored_options import (
    StoredOptions,
    as_last_time,
    flags,
    notes_of,
    read_options,
    stored_text,
)

Json = dict[str, Any]
SOME = st.lists(st.sampled_from(["mlrun", "spark", "acme"]), unique=True).map(tuple)
CHOICES = st.builds(
    Choices,
    st.lists(st.sampled_from(overlays()), unique=True, min_size=1).map(tuple),
    st.lists(st.sampled_from(components()), unique=True).map(tuple),
    SOME,
    st.sampled_from(["", "example.invalid/fairlead:1"]),
    url=st.sampled_from(["", "https://example.invalid/mutate"]),
    authority=st.sampled_from([b"", b"-----BEGIN CERTIFICATE-----\n"]),
)


def deployment(text: str) -> Json:
    """The controller's, with this annotation."""
    return {"metadata": {"annotations": {names.INSTALL_OPTIONS: text}}}


@given(CHOICES)
def test_without_an_option_everything_is_as_last_time(choices: Choices) -> None:
    """All but policies, which are objects of their own."""
    options = read_options(deployment(stored_text(choices, {})))
    assert as_last_time(Choices(()), options) == choices


@given(CHOICES, CHOICES)
def test_options_are_added_and_choices_of_one_thing_replaced(one: Choices, other: Choices) -> None:
    """Nothing of last time is lost but by an option that takes its place."""
    options = read_options(deployment(stored_text(one, {})))
    both = as_last_time(other, options)
    assert both.overlays == other.overlays
    assert {*both.components} == {*one.components, *other.components}
    assert {*both.sources} == {*one.sources, *other.sources}
    assert both.image == (other.image or one.image)
    assert (both.url, both.authority) == (
        (other.url, other.authority) if other.url else (one.url, one.authority)
    )
    assert as_last_time(both, options) == both


def test_the_first_time_has_the_default_overlay() -> None:
    """And nobody has stored options."""
    assert read_options(None) is None
    assert read_options({"metadata": {}}) is None
    assert as_last_time(Choices(()), None) == Choices()


def test_an_installation_has_its_options_in_the_controllers_deployment() -> None:
    """There `uninstall` deletes them, too."""
    choices = Choices(sources=("mlrun",), components=("nodes",))
    options = read_options(adapted(choices)[CONTROLLER])
    assert as_last_time(Choices(()), options) == choices


def test_options_that_this_version_does_not_know_stop_it(wording: Wording) -> None:
    """It would take them away. What is damaged alone is left out."""
    for stored in (
        {"shape": 2},
        {"shape": 1, "program": "9.0.0", "components": ["newer", "nodes"]},
        {"shape": 1, "program": "9.0.0", "paint": "red"},
        {"shape": 1, "overlays": ["other"]},
    ):
        with pytest.raises(InstallationError) as refused:
            read_options(deployment(json.dumps(stored)))
        mentions(str(refused.value), names.INSTALL_OPTIONS, "--reset")
        wording(str(refused.value))
    with pytest.raises(InstallationError, match="want a JSON object") as refused:
        read_options(deployment("[]"))
    wording(str(refused.value))
    damaged = read_options(deployment('{"sources": [1, "mlrun"], "image": {}}'))
    assert damaged
    assert (damaged.sources, damaged.image) == (("mlrun",), "")


def test_options_are_shown_as_the_command_line_has_them(wording: Wording) -> None:
    """An image of last time is named when another version installs."""
    options = StoredOptions(
        program="0.0.1",
        overlays=("default", "monitoring"),
        components=("nodes", "backend-kueue"),
        sources=("mlrun",),
        image="example.invalid/fairlead:0.0.1",
        url="https://example.invalid/mutate",
    )
    assert flags(options) == (
        "--overlay default --overlay monitoring --source mlrun --nodes --backend kueue "
        "--image example.invalid/fairlead:0.0.1 --webhook-url https://example.invalid/mutate"
    )
    for note in notes_of(options, ""):
        wording(note)
    assert len([*notes_of(options, "example.invalid/fairlead:2")]) == 1
    assert not [*notes_of(StoredOptions(overlays=("default",)), "")]
