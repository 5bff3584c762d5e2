"""Pod templates are held against the pod schema: each fault at its path, and nothing else said."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.pod_schema.templates import (
    NAMES,
    NEGATIVE,
    PREFERRED,
    RIGHT,
    WRONG,
    mounting,
    profiled,
    template,
)
from tests.wording import mentions
from webhook.pod_schema import field_checks, template_rules, text_rules
from webhook.pod_schema.field_checks import Fault
from webhook.policy.findings import path_text

Json = dict[str, Any]


def faults(found: Json, **about: Any) -> list[Fault]:
    """All faults of a template, with their paths from its root."""
    spec, metadata = found.get("spec"), found.get("metadata")
    given = metadata.get("annotations") if isinstance(metadata, dict) else None
    of_spec = template_rules.faults(spec, **about)
    of_spec += template_rules.metadata_faults(metadata, spec)
    return [
        *field_checks.faults(found),
        *(each._replace(path=("spec", *each.path)) for each in of_spec),
        *text_rules.annotation_faults(
            given, ("metadata", "annotations"), containers=template_rules.container_names(spec)
        ),
    ]


def text(fault: Fault) -> str:
    return f"{path_text(fault.path)}: {fault.message}"


@pytest.mark.parametrize(("found", "wanted"), WRONG, ids=[each for _, each in WRONG])
def test_a_fault_is_an_error_at_its_path(found: Json, wanted: str) -> None:
    """With the value that was found, and what is allowed or meant."""
    (fault,) = faults(found)
    assert (text(fault), fault.severity) == (wanted, "error")


@pytest.mark.parametrize(("metadata", "wanted"), NAMES)
def test_a_name_that_is_none_is_an_error(metadata: Json, wanted: str) -> None:
    """Of a pod, or of what makes pods; its prefix, too."""
    assert [text(each) for each in text_rules.name_faults(metadata)] == [wanted]
    assert not [*text_rules.name_faults({"name": "my.pod", "generateName": "P-"})]
    assert not [*text_rules.name_faults({"generateName": "my.pod-" + "a" * 300})]


def test_texts_have_a_maximum_length() -> None:
    """Names as DNS has it, paths of profiles as Linux."""
    (fault,) = text_rules.name_faults({"name": "a" * 254})
    mentions(text(fault), "metadata.name", "253")
    (fault,) = faults(template(**profiled("appArmorProfile", "p" * 4096)))
    mentions(text(fault), "appArmorProfile.localhostProfile", "4096", "4095")


def test_nothing_is_reported_of_a_template_that_the_api_server_takes() -> None:
    """Nulls are fields that are left out."""
    for each in RIGHT:
        assert faults(each) == []


def test_what_is_taken_and_means_something_else_is_a_warning() -> None:
    """A pod with such a grace period is ended after a second."""
    (fault,) = faults(NEGATIVE)
    assert fault.severity == "warning"
    mentions(text(fault), "spec.terminationGracePeriodSeconds", "-1", "1")


def test_a_label_value_that_is_none_is_a_warning_in_a_preference() -> None:
    """The API server takes it there; no node has it."""
    (fault,) = faults(PREFERRED)
    assert fault.severity == "warning"
    mentions(text(fault), "preference.matchExpressions[0].values[0]", "'b c'", "no node has it")


def test_a_field_that_is_near_to_none_may_be_newer_than_we_are() -> None:
    """So it is a warning, which names the version that does not know it."""
    (fault,) = faults(template(brandNewThing=1))
    assert (fault.path, fault.severity, fault.at_key) == (
        ("spec", "brandNewThing"),
        "warning",
        True,
    )
    mentions(fault.message, field_checks.schema().version, "PodSpec")


def test_a_field_of_a_later_version_is_no_typo_although_it_is_near_to_one() -> None:
    """The owner of a volume's files is a field from Kubernetes 1.37 on."""
    volumes = [{"name": "v", "configMap": {"name": "c", "defaultUser": 1000}}]
    (fault,) = faults(template(volumes=volumes))
    assert path_text(fault.path) == "spec.volumes[0].configMap.defaultUser"
    assert fault.severity == "warning"


def test_what_is_merged_into_another_template_lacks_nothing() -> None:
    """A role's template of a Run says only what differs."""
    for found, wanted in WRONG:
        (whole, part) = ([*field_checks.faults(found, whole=each)] for each in (True, False))
        assert part == ([] if wanted.endswith(": is required") else whole)
    assert not [*field_checks.faults({"spec": {"$patch": "replace"}}, whole=False)]


def test_volumes_that_a_controller_adds_are_known() -> None:
    """By their names, or at least that there may be some."""
    assert faults(mounting("claim"), volumes={"claim"}) == []
    (fault,) = faults(mounting("claim"), more_volumes=True)
    assert fault.severity == "warning"


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_whatever_stands_in_a_template_nothing_is_raised(data: st.DataObject) -> None:
    """Something of another type anywhere in it."""
    every = [*(each for each, _ in WRONG), *RIGHT]
    found = copy.deepcopy(data.draw(st.sampled_from(every)))
    holder: Any = found
    while True:
        key = data.draw(
            st.sampled_from(list(holder) if isinstance(holder, dict) else range(len(holder)))
        )
        below = holder[key]
        if not isinstance(below, dict | list) or not below or data.draw(st.booleans()):
            break
        holder = below
    others: st.SearchStrategy[Any] = st.sampled_from(
        [None, 1, -1.5, True, "", "a", [], {}, [1], [None], {"a": 1}, [[]], {1: 2}]
    )
    holder[key] = data.draw(others)
    for fault in faults(found):
        assert fault.message
        assert path_text(fault.path)


def test_a_template_that_is_wrong_all_over_is_judged_in_little_time() -> None:
    """Whoever may write one must not keep the webhook from its work."""
    many = [f"unknown{number}" for number in range(100_000)]
    assert len(faults(template(**dict.fromkeys(many)))) == field_checks.MAX_FAULTS
    assert len(faults(mounting(*many, volumes=tuple(f"v{number}" for number in many)))) > 0
    assert len(faults(mounting(*many))) == field_checks.MAX_FAULTS
