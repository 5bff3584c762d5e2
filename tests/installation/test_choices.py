"""What is chosen, and what comes of it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from webhook import names, validating
from webhook.guards import stamp_guard
from webhook.installation.choices import Choices, adapted, is_stamp_guard
from webhook.installation.manifests import (
    CONFIG_MAP,
    CONTROLLER,
    FROM_FILES,
    INTERCEPTION,
    JUDGING,
    WEBHOOK,
    every_key,
    render,
    shipped_classes,
)
from webhook.installation.object_kinds import Key, containers_of
from webhook.installation.policy_files import GIVEN, SHIPPED, has_argument, takes_files
from webhook.installation.policy_plan import is_still, of_key
from webhook.interception import DEFAULT_SOURCES, webhooks
from webhook.policy.load import load

Json = dict[str, Any]
MINE = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: mine}
spec: {defaults: {nodeSelector: {pool: mine}}}
"""


def entries(overlay: str, **choices: Any) -> list[Json]:
    """The webhook's entries."""
    made: list[Json] = adapted(Choices((overlay,), **choices))[INTERCEPTION]["webhooks"]
    return made


def test_without_choices_it_is_the_manifests() -> None:
    """But for the notes of what policies were put there, and the options."""
    before = [*render().values(), *shipped_classes()]
    made = adapted(Choices())
    policies = [each for key, each in made.items() if of_key(key)]
    assert {each["metadata"]["name"] for each in policies} == {"spot", "on-demand", "gpu"}
    for each in policies:
        assert is_still(each, SHIPPED)
        assert list(each["metadata"].pop("annotations")) == [names.POLICIES_APPLIED]
    controller = made[CONTROLLER]["metadata"]
    annotations = controller.pop("annotations")
    del annotations[names.INSTALL_OPTIONS]
    controller |= {"annotations": annotations} if annotations else {}
    assert sorted(map(str, made.values())) == sorted(map(str, before))


def test_all_programs_get_the_image() -> None:
    """Also what runs from time to time."""
    made = adapted(Choices(components=("ui", "doctor"), image="example.invalid/f:1"))
    assert set(re.findall(r'"image": "([^"]*)"', json.dumps([*made.values()]))) == {
        "example.invalid/f:1"
    }
    images = {
        str(key): [each["image"] for each in containers_of(found)]
        for key, found in made.items()
        if containers_of(found)
    }
    programs = ("fairlead-controller", "fairlead-ui", "fairlead-webhook")
    expected = [f"Deployment fairlead-system/{name}" for name in programs]
    assert sorted(images) == ["CronJob fairlead-system/fairlead-doctor", *expected]


@pytest.mark.parametrize(
    ("overlay", "policy"), [("default", "Fail"), ("fail-open-guarded", "Ignore")]
)
def test_sources_add_entries_in_the_overlays_mode(overlay: str, policy: str) -> None:
    """By the function that the components of the manifests are made with."""
    sources = (*DEFAULT_SOURCES, "mlrun", "katib")
    made = entries(overlay, sources=("katib", "mlrun"))
    assert made == webhooks(sources, failure_policy=policy)
    assert entries(overlay) == webhooks(failure_policy=policy)


def test_an_unknown_source_is_an_error() -> None:
    """With those that there are."""
    with pytest.raises(ValueError, match="unknown source 'mlflow'"):
        entries("default", sources=("mlflow",))


@pytest.mark.parametrize(
    ("overlay", "deny"), [("fail-open-guarded", False), ("fail-open-guarded-deny", True)]
)
def test_the_guard_means_the_pods_of_the_chosen_sources(overlay: str, deny: bool) -> None:
    """One binding for each entry, in the overlay's mode."""
    made = adapted(Choices((overlay,), sources=("mlrun",)))
    guards = [each for key, each in made.items() if is_stamp_guard(key)]
    wanted = stamp_guard(made[INTERCEPTION]["webhooks"], deny=deny)
    by_name = {(each["kind"], each["metadata"]["name"]): each for each in wanted}
    assert {(each["kind"], each["metadata"]["name"]): each for each in guards} == by_name
    assert ("ValidatingAdmissionPolicyBinding", "fairlead-stamp-mlrun-0") in by_name


def test_a_webhook_elsewhere_is_called_by_its_address() -> None:
    """With the authority that vouches for it."""
    url = "https://192.0.2.1:8443/mutate"
    made = entries("development", url=url, authority=b"pem")
    assert made == webhooks(url=url, ca_bundle=b"pem")
    chosen = Choices(("development",), url=url, authority=b"pem")
    wanted = validating.webhooks(url="https://192.0.2.1:8443", ca_bundle=b"pem")
    assert adapted(chosen)[JUDGING]["webhooks"] == wanted


def test_policies_take_the_place_of_those_that_ship() -> None:
    """All of them, as objects with a note of their own."""
    made = adapted(Choices(policies={"mine.yaml": MINE}))
    (policy,) = (each for key, each in made.items() if of_key(key))
    assert policy["kind"] == "PlacementPolicy"
    assert policy["metadata"]["name"] == "mine"
    assert is_still(policy, GIVEN)
    assert not is_still(policy, SHIPPED)


@pytest.mark.parametrize(
    ("component", "beside", "program", "argument"),
    [
        ("nodes", (), WEBHOOK, "--nodes"),
        ("nodes", (FROM_FILES,), WEBHOOK, "--nodes"),
        ("policy-reports", (), CONTROLLER, "--policy-reports"),
    ],
)
def test_a_component_is_an_argument_and_the_rights_to_it(
    component: str, beside: tuple[str, ...], program: Key, argument: str
) -> None:
    """Bound; both are removed where it is not chosen."""
    without = adapted(Choices(components=beside))
    made = adapted(Choices(components=(*beside, component)))
    assert not has_argument(without[program], argument)
    assert has_argument(made[program], argument)
    more = made.keys() - without.keys()
    assert {str(key) for key in more} == {
        f"{kind} {program.name}-{component}" for kind in ("ClusterRole", "ClusterRoleBinding")
    }
    assert more < every_key()
    assert list(made) == sorted(made, key=lambda key: key.rank)


def test_policies_from_files_are_in_a_config_map() -> None:
    """Those given, or those that ship; none is an object, and so none is judged."""
    chosen = Choices(policies={"b.yaml": "2", "a.yaml": "1"}, components=(FROM_FILES,))
    assert adapted(chosen)[CONFIG_MAP]["data"] == {
        "a.yaml": "1",
        "b.yaml": "2",
    }
    made = adapted(Choices(components=(FROM_FILES,)))
    assert not any(map(of_key, made))
    files = {name: text.encode() for name, text in made[CONFIG_MAP]["data"].items()}
    assert set(load(files).policies.classes) == {"spot", "on-demand", "gpu"}
    assert takes_files(made[WEBHOOK])
    assert [each["name"] for each in made[JUDGING]["webhooks"]] == [validating.WORKLOADS]
