"""What is chosen, and what comes of it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from webhook import names
from webhook.guards import stamp
from webhook.installation.choices import Choices, adapted, configuration_of, is_stamp_guard
from webhook.installation.kinds import key_of
from webhook.installation.overlays import objects_of
from webhook.interception import DEFAULT_SOURCES, webhooks

Json = dict[str, Any]


def entries(overlay: str, **choices: Any) -> list[Json]:
    """The webhook's entries."""
    found = configuration_of(adapted(objects_of(overlay), Choices(**choices)))
    assert found
    made: list[Json] = found[1]["webhooks"]
    return made


def test_without_choices_it_is_the_manifests() -> None:
    """But for the note of what policies were put there."""
    before = deepcopy(objects_of("default"))
    made = adapted(objects_of("default"), Choices())
    config_map = key_of("ConfigMap", names.POLICIES_CONFIG_MAP, names.NAMESPACE)
    annotations = made[config_map]["metadata"].pop("annotations")
    assert list(annotations) == [names.POLICIES_APPLIED]
    assert sorted(map(str, made.values())) == sorted(map(str, before))
    assert objects_of("default") == before


def test_both_programs_get_the_image() -> None:
    """And nothing else does."""
    made = adapted(objects_of("default"), Choices(image="example.invalid/f:1"))
    images = [
        container["image"]
        for each in made.values()
        if each["kind"] == "Deployment"
        for container in each["spec"]["template"]["spec"]["containers"]
    ]
    assert images == ["example.invalid/f:1"] * 2


@pytest.mark.parametrize(
    ("overlay", "policy"), [("default", "Fail"), ("fail-open-guarded", "Ignore")]
)
def test_sources_add_entries_in_the_overlays_mode(overlay: str, policy: str) -> None:
    """By the function that the components of the manifests are made with."""
    sources = (*DEFAULT_SOURCES, "mlrun", "katib")
    made = entries(overlay, sources=("katib", "mlrun"))
    assert made == webhooks(sources, failure_policy=policy)
    assert entries(overlay) == webhooks(failure_policy=policy)


def test_a_source_that_nobody_knows_is_an_error() -> None:
    """With those that there are."""
    with pytest.raises(ValueError, match="no source 'mlflow'"):
        entries("default", sources=("mlflow",))


@pytest.mark.parametrize(
    ("overlay", "deny"), [("fail-open-guarded", False), ("fail-open-guarded-deny", True)]
)
def test_the_guard_means_the_pods_of_the_chosen_sources(overlay: str, deny: bool) -> None:
    """One binding for each entry, in the overlay's mode."""
    made = adapted(objects_of(overlay), Choices(sources=("mlrun",)))
    guards = [each for key, each in made.items() if is_stamp_guard(key)]
    found = configuration_of(made)
    assert found
    wanted = stamp.documents(found[1]["webhooks"], deny=deny)
    by_name = {(each["kind"], each["metadata"]["name"]): each for each in wanted}
    assert {(each["kind"], each["metadata"]["name"]): each for each in guards} == by_name
    assert ("ValidatingAdmissionPolicyBinding", "fairlead-stamp-mlrun-0") in by_name


def test_a_webhook_elsewhere_is_called_by_its_address() -> None:
    """With the authority that vouches for it."""
    url = "https://192.0.2.1:8443/mutate"
    made = entries("development", url=url, authority=b"pem")
    assert made == webhooks(url=url, ca_bundle=b"pem")


def test_policies_take_the_place_of_those_that_ship() -> None:
    """All of them."""
    made = adapted(objects_of("default"), Choices(policies={"b.yaml": "2", "a.yaml": "1"}))
    config_map = key_of("ConfigMap", names.POLICIES_CONFIG_MAP, names.NAMESPACE)
    assert made[config_map]["data"] == {"a.yaml": "1", "b.yaml": "2"}
