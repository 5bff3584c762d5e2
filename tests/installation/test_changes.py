"""What an installation takes away or changes, by its objects."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wording import Wording, mentions
from webhook import names
from webhook.errors import InstallationError
from webhook.installation.changes import read_losses, refuse_managed
from webhook.installation.choices import Choices, adapted
from webhook.installation.foreign_changes import foreign_losses, returning
from webhook.installation.manifests import FROM_FILES, WEBHOOK, backends, overlays
from webhook.installation.object_kinds import CRD, Key
from webhook.installation.restoring import SHARED, restoration

if TYPE_CHECKING:
    from webhook.installation.restoring import DryRuns

Json = dict[str, Any]
ADDED = ("nodes", "policy-reports", "ui", "doctor", *(f"backend-{name}" for name in backends()))
OVERLAYS = st.sampled_from(overlays()).map(lambda name: (name,))


def some(*values: str) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(values), unique=True).map(tuple)


def live(choices: Choices) -> dict[Key, Json]:
    """The objects, as `fairlead install` has applied them."""
    found = deepcopy(adapted(choices))
    for each in found.values():
        each["metadata"]["managedFields"] = [{"manager": names.INSTALL_MANAGER}]
    return found


def losses(live: dict[Key, Json], wanted: dict[Key, Json]) -> list[str]:
    """Nobody else has written a field of these, so the API server is not asked."""
    return asyncio.run(read_losses(cast("DryRuns", None), live, wanted))


@given(OVERLAYS, some("mlrun", "spark", "jobset"), some("mlrun", "dask"), some(*ADDED))
def test_what_is_only_added_needs_no_answer(
    overlay: tuple[str, ...],
    sources: tuple[str, ...],
    more: tuple[str, ...],
    added: tuple[str, ...],
) -> None:
    """And an installation that is as it should be needs none either."""
    before = live(Choices(overlay, sources=sources))
    assert losses(before, adapted(Choices(overlay, sources=sources))) == []
    assert losses(before, adapted(Choices(overlay, added, (*sources, *more)))) == []


@given(OVERLAYS, st.sampled_from(ADDED), st.sampled_from(["mlrun", "spark"]))
def test_whatever_is_added_is_a_loss_on_the_way_back(
    overlay: tuple[str, ...], component: str, source: str
) -> None:
    """No option can be taken away without a line."""
    wanted = adapted(Choices(overlay))
    assert losses(live(Choices(overlay, (component,))), wanted)
    assert losses(live(Choices(overlay, sources=(source,))), wanted)


def test_losses_name_the_object_the_value_before_and_after(wording: Wording) -> None:
    """What a person has changed by hand is among them."""
    before = live(Choices(("fail-open-guarded-deny",), (FROM_FILES,), policies={"mine.yaml": "1"}))
    spec = before[WEBHOOK]["spec"]
    spec["replicas"] = 5
    spec["template"]["spec"]["containers"][0]["args"].append("--log-level=debug")
    for line in losses(before, adapted(Choices(("fail-open-guarded",), (FROM_FILES,)))):
        wording(line)
    # Others' objects are not deleted.
    theirs = {key: {**each, "metadata": {"name": "any"}} for key, each in before.items()}
    assert not any("is deleted" in line for line in losses(theirs, {}))


def test_fields_of_others_are_named_where_a_write_changes_them(wording: Wording) -> None:
    """By the managers of the object; what a write leaves, and what is ours, is no loss."""
    role: Json = {
        "metadata": {
            "labels": {"team": "a", "tier": "b"},
            "managedFields": [
                {"manager": names.INSTALL_MANAGER, "fieldsV1": {"f:spec": {"f:ours": {}}}},
                {"manager": "status", "subresource": "status", "fieldsV1": {"f:rules": {}}},
                {
                    "manager": "kubectl-edit",
                    "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:team": {}, "f:tier": {}}},
                        "f:rules": {},
                        "f:spec": {
                            "f:ours": {},
                            "f:flag": {},
                            "f:ports": {
                                'k:{"port":1}': {".": {}, "f:name": {}},
                                'k:{"port":2}': {".": {}, "f:name": {}},
                            },
                        },
                    },
                },
            ],
        },
        "rules": [{"verbs": ["get"]}],
        "spec": {
            "ours": 1,
            "flag": True,
            "ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "c"}],
        },
    }
    after: Json = {
        "metadata": {"labels": {"team": "a", "tier": "c"}},
        "rules": [{"verbs": ["get"]}, {"verbs": ["list"]}],
        "spec": {"ours": 2, "flag": False, "ports": [{"port": 1, "name": "b"}]},
    }
    lines = foreign_losses(role, after)
    for line in lines.values():
        wording(line)
    assert foreign_losses(role, role) == {}
    assert "spec.ours" not in lines


@given(OVERLAYS, some("mlrun", "spark"), some(*ADDED))
def test_what_is_as_it_was_installed_needs_no_change(
    overlay: tuple[str, ...], sources: tuple[str, ...], added: tuple[str, ...]
) -> None:
    """No JSON Patch, and nothing comes back; with one field more or less there is one."""
    wanted = adapted(Choices(overlay, added, sources))
    for key, each in wanted.items():
        found = deepcopy(each)
        found["metadata"]["resourceVersion"] = "1"
        for entry in found.get("webhooks") or ():
            entry["clientConfig"]["caBundle"] = "YQ=="
        assert restoration(key, found, each) == []
        assert returning(found, each, each) == {}
        if "spec" in each and key.kind.name not in SHARED:
            found["spec"] = {**found["spec"], "foreign": 1}
            assert restoration(key, found, each)[1]["value"] == each["spec"]
        if labels := found["metadata"].get("labels"):
            del labels["app.kubernetes.io/name"]
            assert len(returning(found, each, each)) == 1


def test_objects_of_several_tools_are_refused_with_each_command(wording: Wording) -> None:
    """Definitions that Helm keeps count beside objects of its release only."""
    objects = live(Choices())
    helm = {names.HELM_RELEASE: "ml", "helm.sh/resource-policy": "keep"}
    for key, each in objects.items():
        if key.kind.name == CRD:
            each["metadata"]["annotations"] = helm
    refuse_managed(objects)
    argo = {"argocd.argoproj.io/tracking-id": "ml:apps/Deployment:x/y"}
    objects[WEBHOOK]["metadata"]["annotations"] = argo
    with pytest.raises(InstallationError) as refused:
        refuse_managed(objects)
    mentions(str(refused.value), "helm upgrade ml", "argocd app sync ml", "Nothing has been")
    wording(str(refused.value))
