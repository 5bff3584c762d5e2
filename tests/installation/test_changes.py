"""What an installation takes away or changes, by its objects."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wording import Wording, mentions
from webhook import names
from webhook.errors import InstallationError
from webhook.installation.changes import losses, refuse_managed
from webhook.installation.choices import Choices, adapted
from webhook.installation.manifests import CONFIG_MAP, FROM_FILES, WEBHOOK, backends, overlays
from webhook.installation.object_kinds import CRD, Key

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
    kept = losses(before, adapted(Choices(("fail-open-guarded",), (FROM_FILES,))), [CONFIG_MAP])
    assert not any("mine.yaml" in line for line in kept)
    # Others' objects are not deleted.
    theirs = {key: {**each, "metadata": {"name": "any"}} for key, each in before.items()}
    assert not any("is deleted" in line for line in losses(theirs, {}))


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
