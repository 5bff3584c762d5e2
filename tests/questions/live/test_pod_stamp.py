"""What a live pod's stamp says, whoever wrote it."""

from __future__ import annotations

import json

import pytest

from webhook import names
from webhook.installation.doctor import pod_checks
from webhook.questions.live.pod_stamp import Stamp, read_stamp
from webhook.workloads.object import Object


def pod(stamp: object) -> Object:
    text = stamp if isinstance(stamp, str) else json.dumps(stamp)
    metadata = {"name": "p", "annotations": {names.PLACEMENT: text}}
    return Object("cluster", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata})


def test_a_stamp_credits_fields_to_policies() -> None:
    """With the set's hash; or it says why the pod was left alone."""
    policies, exceptions = {"spot": ["capacity[spot]"], "none": []}, {"debugging": ["gpu"]}
    whole = {"set": "12ab", "policies": policies, "exceptions": exceptions}
    assert read_stamp(pod(whole)) == Stamp("12ab", policies, "", exceptions, whole)
    left = read_stamp(pod({"set": "12ab", "leftAlone": "bound"}))
    assert left is not None
    assert (left.left_alone, left.policies) == ("bound", {})


def test_a_stamp_names_those_that_were_set_aside_too() -> None:
    """Whoever asks for one of them asks for no policy that never was."""
    found = read_stamp(
        pod({"set": "12ab", "policies": {"spot": []}, "exceptions": {"anna": ["gpu"]}})
    )
    assert found is not None
    assert found.all_policies == ["spot", "gpu"]


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "3"])
def test_an_invalid_stamp_counts_as_missing_for_the_doctor_too(text: str) -> None:
    """It finds the pods that `explain` says have none."""
    written = pod(text)
    value = {**written.value, "metadata": {**written.metadata, "namespace": "n"}}
    assert pod_checks.read_pod(value)


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "3"])
def test_an_invalid_stamp_counts_as_missing(text: str) -> None:
    """Anybody who writes pods may write there."""
    assert read_stamp(pod(text)) is None


def test_what_would_steer_a_terminal_is_shown_instead() -> None:
    """Names and fields are printed."""
    found = read_stamp(pod({"set": "\x1b[2J", "policies": {"a\x1b]": ["b\x07"], "c": "no list"}}))
    assert found is not None
    assert found.set_hash == "\\x1b[2J"
    assert found.policies == {"a\\x1b]": ["b\\x07"]}
