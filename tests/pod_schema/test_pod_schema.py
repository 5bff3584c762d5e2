"""Pod templates are held against the pod schema: each fault at its path, and nothing else said."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.pod_schema.templates import EVERYTHING, MISSING, UNKNOWN, WRONG, mounting, template
from tests.wording import Wording, mentions
from webhook.pod_schema import fields, rules
from webhook.pod_schema.fields import Fault
from webhook.policy.findings import path_text

Json = dict[str, Any]


def faults(found: Json, **about: Any) -> list[Fault]:
    """All faults of a template, with their paths from its root."""
    of_spec = rules.faults(found.get("spec"), **about)
    return [
        *fields.faults(found),
        *(each._replace(path=("spec", *each.path)) for each in of_spec),
    ]


@pytest.mark.parametrize(("found", "path", "facts"), WRONG, ids=[each[1] for each in WRONG])
def test_a_fault_is_an_error_at_its_path(
    found: Json, path: str, facts: tuple[str, ...], wording: Wording
) -> None:
    """With the value that was found, and what is allowed or meant."""
    (fault,) = faults(found)
    assert (path_text(fault.path), fault.severity) == (path, "error")
    mentions(fault.message, *facts)
    wording(fault.message)


def test_nothing_is_said_of_a_template_that_the_api_server_takes() -> None:
    """Nulls are fields that are left out."""
    assert faults(EVERYTHING) == []


def test_a_field_that_is_near_to_none_may_be_newer_than_we_are() -> None:
    """So it is a warning, which names the version that does not know it."""
    (fault,) = faults(template(brandNewThing=1))
    assert (fault.path, fault.severity, fault.at_key) == (
        ("spec", "brandNewThing"),
        "warning",
        True,
    )
    mentions(fault.message, fields.schema().version, "PodSpec")


def test_what_is_merged_into_another_template_lacks_nothing() -> None:
    """A role's template of a Run says only what differs."""
    for found, _, _ in MISSING:
        assert not [*fields.faults(found, whole=False)]
    for found, path, _ in UNKNOWN:
        (fault,) = fields.faults(found, whole=False)
        assert path_text(fault.path) == path
    assert not [*fields.faults({"spec": {"$patch": "replace"}}, whole=False)]


def test_volumes_that_a_controller_adds_are_known() -> None:
    """By their names, or at least that there may be some."""
    assert faults(mounting("claim"), volumes={"claim"}) == []
    (fault,) = faults(mounting("claim"), more_volumes=True)
    assert fault.severity == "warning"


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_whatever_stands_in_a_template_nothing_is_raised(data: st.DataObject) -> None:
    """Something of another type anywhere in it."""
    found = copy.deepcopy(EVERYTHING)
    holder: Any = found
    while True:
        key = data.draw(st.sampled_from(list(holder) if isinstance(holder, dict) else [0]))
        below = holder[key]
        if not isinstance(below, dict | list) or not below or data.draw(st.booleans()):
            break
        holder = below
    others: st.SearchStrategy[Any] = st.sampled_from(
        [None, 1, -1.5, True, "", "a", [], {}, [1], [None], {"a": 1}, [[]]]
    )
    holder[key] = data.draw(others)
    for fault in faults(found):
        assert fault.message
        assert path_text(fault.path)


def test_a_template_that_is_wrong_all_over_is_judged_in_little_time() -> None:
    """Whoever may write one must not keep the webhook from its work."""
    many = [f"unknown{number}" for number in range(100_000)]
    assert len(faults(template(**dict.fromkeys(many)))) == fields.MOST
    assert len(faults(mounting(*many, volumes=tuple(f"v{number}" for number in many)))) > 0
    assert len(faults(mounting(*many))) == fields.MOST
