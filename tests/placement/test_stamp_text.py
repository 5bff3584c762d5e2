"""What a live pod's stamp says, whoever wrote it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from webhook import names
from webhook.cluster_objects import unplaced_pods
from webhook.placement.stamp_text import Stamp, read_given_up, read_stamp, read_waits


def metadata(stamp: object) -> dict[str, Any]:
    text = stamp if isinstance(stamp, str) else json.dumps(stamp)
    return {"name": "p", "namespace": "n", "annotations": {names.PLACEMENT: text}}


def test_a_stamp_credits_fields_to_policies() -> None:
    """With the set's hash; or it says why the pod was left alone."""
    policies, exceptions = {"spot": ["capacity[spot]"], "none": []}, {"debugging": ["gpu"]}
    left_out = {"none": ["labels[team]"]}
    whole = {"set": "12ab", "policies": policies, "exceptions": exceptions, "leftOut": left_out}
    found = Stamp("12ab", policies, "", exceptions, {}, left_out, whole)
    assert read_stamp(metadata(whole)) == found
    left = read_stamp(metadata({"set": "12ab", "leftAlone": "bound"}))
    assert left is not None
    assert (left.left_alone, left.policies) == ("bound", {})


def test_a_stamp_names_those_that_were_set_aside_too() -> None:
    """Whoever asks for one of them asks for no policy that never was."""
    found = read_stamp(
        metadata({"set": "12ab", "policies": {"spot": []}, "exceptions": {"anna": ["gpu"]}})
    )
    assert found is not None
    assert found.all_policies == ["spot", "gpu"]


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "3"])
def test_an_invalid_stamp_counts_as_missing_for_the_doctor_too(text: str) -> None:
    """It finds the pods that `explain` says have none."""
    assert unplaced_pods.read_pod({"metadata": metadata(text)})


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "3"])
def test_an_invalid_stamp_counts_as_missing(text: str) -> None:
    """Anybody who writes pods may write there."""
    assert read_stamp(metadata(text)) is None


def test_what_would_steer_a_terminal_is_shown_instead() -> None:
    """Names and fields are printed."""
    policies = {"a\x1b]": ["b\x07"], "c": "no list"}
    found = read_stamp(metadata({"set": "\x1b[2J", "policies": policies}))
    assert found is not None
    assert found.set_hash == "\\x1b[2J"
    assert found.policies == {"a\\x1b]": ["b\\x07"]}


def test_what_a_newer_version_wrote_is_kept_and_what_has_the_wrong_type_is_left_out() -> None:
    """Every pod has such a stamp after a rollback."""
    whole = {
        "set": "12ab",
        "policies": {"a": ["tolerations[x]", 3, None], "b": {"newer": True}},
        "exceptions": ["newer"],
        "leftAlone": {"newer": 1},
        "newer": {"x": [1]},
    }
    assert read_stamp(metadata(whole)) == Stamp(
        "12ab", {"a": ["tolerations[x]"]}, "", {}, {}, {}, whole
    )


@pytest.mark.parametrize(
    ("fallback", "waits"),
    [
        ({"spot": 600, "gpu": None}, (("gpu", None), ("spot", 600))),
        ({"spot": 86400, "gpu": 0}, (("gpu", 0), ("spot", 86400))),
        ({"a": 86401, "c": -1, "d": 1e300, "e": True, "f": "2026-11-28T12:00:00Z"}, ()),
        ({"No Class": 5, "x" * 254: 5, "": 5}, ()),
        ([["spot", 5]], ()),
    ],
)
def test_only_a_wait_within_the_bounds_of_policies_counts(fallback: object, waits: object) -> None:
    """The controller adds it to times, and writes the class into the Run's status."""
    assert read_waits(metadata({"fallback": fallback})) == waits


def test_a_stamp_with_any_number_of_classes_costs_a_run_few_events() -> None:
    assert len(read_waits(metadata({"fallback": {f"c{at}": 5 for at in range(5000)}}))) == 32


def test_a_class_that_was_given_up_has_the_time_until_when() -> None:
    """An author's text in its place is left out."""
    fallback = {"a": "2026-11-28T12:00:00Z", "b": 600, "c": None, "d": "soon", "No Class": "2026"}
    assert read_given_up(metadata({"fallback": fallback})) == (("a", "2026-11-28T12:00:00Z"),)
