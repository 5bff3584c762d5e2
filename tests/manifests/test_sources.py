"""Whichever sources are chosen, in whatever order: a pod of theirs is sent once, no other is."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.manifests.chart import with_components
from tests.manifests.generated import MANIFESTS, OTHERS
from tests.manifests.kustomize import Json, kustomized, of_kind, one, selects
from webhook import names
from webhook.interception import DEFAULT_SOURCES, webhooks
from webhook.sources import SOURCES
from webhook.sources.marks import Mark

NAMES = tuple(source.name for source in OTHERS)
MARKS = [mark for source in SOURCES for mark in source.marks if not mark.namespace]
CONFIGURATION = "MutatingWebhookConfiguration"
# In the table's order, in the other, some in between, two that share a key, and each alone.
CHOICES = (
    NAMES,
    NAMES[::-1],
    NAMES[1::2] + NAMES[::2],
    ("kubeflow-training", "mpi-operator"),
    ("mpi-operator", "kubeflow-training"),
    *((name,) for name in NAMES),
)


def entries(folder: Path, sources: Sequence[str], kubectl: Path) -> list[Json]:
    """The webhook's entries of the base with these components, by the real kustomize."""
    folder.mkdir()
    # Without all else that the base has, which would take the most of the time.
    shutil.copy(MANIFESTS / "base" / "interception.yaml", folder)
    whole = {
        "resources": ["interception.yaml"],
        "components": [
            os.path.relpath(MANIFESTS / "components" / f"source-{name}", folder) for name in sources
        ],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(whole))
    found: list[Json] = one(kustomized(kubectl, folder), CONFIGURATION)["webhooks"]
    return found


@pytest.fixture(scope="module")
def chosen(
    kubectl_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, ...], list[Json]]:
    """The entries of each of the CHOICES."""
    folder = tmp_path_factory.mktemp("chosen")
    return {
        sources: entries(folder / str(number), sources, kubectl_path)
        for number, sources in enumerate(CHOICES)
    }


def matching(entries: Sequence[Json], pod: dict[str, str], namespace: dict[str, str]) -> int:
    """How often the API server would call for such a pod."""
    return sum(
        selects(entry["objectSelector"], pod) and selects(entry["namespaceSelector"], namespace)
        for entry in entries
    )


def labels(marks: Sequence[Mark]) -> dict[str, str]:
    """A pod's labels with all of these marks; of two for one key the later."""
    return {mark.key: mark.value or "some" for mark in marks}


def check(entries: Sequence[Json], sources: Sequence[str], pod: dict[str, str]) -> None:
    """The pod is sent once if a chosen source, or its namespace, marks it, and else not at all."""
    marks = [
        mark
        for source in SOURCES
        for mark in source.marks
        if source.name in (*DEFAULT_SOURCES, *sources) and not mark.namespace
    ]
    marked = any(mark.key in pod and mark.value in (None, pod[mark.key]) for mark in marks)
    plain = {"kubernetes.io/metadata.name": "team"}
    whole = {**plain, "fairlead.dev/place": "all"}
    own = {**whole, "kubernetes.io/metadata.name": "fairlead-system"}
    found = [matching(entries, pod, namespace) for namespace in (plain, whole, own)]
    assert found == [int(marked), 1, 0], (sources, pod)


def test_every_pair_of_marks_is_one_call(chosen: dict[tuple[str, ...], list[Json]]) -> None:
    """Of chosen sources or of others, and with another value than a mark's."""
    pods = [labels(pair) for pair in itertools.product(MARKS, repeat=2)]
    pods += [{mark.key: "another"} for mark in MARKS] + [{}, {"app": "web"}]
    for sources, found in chosen.items():
        for pod in pods:
            check(found, sources, pod)


@given(st.sampled_from(CHOICES), st.lists(st.sampled_from(MARKS), max_size=6))
def test_any_set_of_marks_is_one_call(
    chosen: dict[tuple[str, ...], list[Json]], sources: tuple[str, ...], marks: list[Mark]
) -> None:
    """However many systems have marked the pod."""
    check(chosen[sources], sources, labels(marks))


def test_kustomize_makes_what_the_code_makes(
    chosen: dict[tuple[str, ...], list[Json]],
) -> None:
    """`fairlead install --source …` and the components come to the same, last row first."""
    for sources in (NAMES[::-1], *((name,) for name in NAMES)):
        assert chosen[sources] == webhooks((*DEFAULT_SOURCES, *sources))


def test_a_component_follows_what_an_overlay_says_of_our_own_entry(
    kubectl_path: Path, tmp_path: Path
) -> None:
    """Sources added to a narrowed installation that fails open do so too, and are as narrow."""
    patch = [
        {"op": "replace", "path": f"/webhooks/{number}/namespaceSelector", "value": value}
        for number in (0, 1)
        for value in [{"matchLabels": {"kubernetes.io/metadata.name": "team"}}]
    ]
    narrowed = tmp_path / "narrowed"
    narrowed.mkdir()
    inner = {
        "resources": [os.path.relpath(MANIFESTS / "base", narrowed)],
        "patches": [{"target": {"kind": CONFIGURATION}, "patch": yaml.safe_dump(patch)}],
    }
    (narrowed / "kustomization.yaml").write_text(yaml.safe_dump(inner))
    components = MANIFESTS / "components"
    outer = {
        "resources": ["narrowed"],
        "components": [
            os.path.relpath(components / name, tmp_path)
            for name in ("source-mlrun", "fail-open", "source-spark")
        ],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(outer))
    found = one(kustomized(kubectl_path, tmp_path), CONFIGURATION)["webhooks"]
    assert len(found) == 2 + 1 + 3
    for entry in found:
        assert entry["failurePolicy"] == "Ignore"
        assert entry["namespaceSelector"] == patch[0]["value"]


@pytest.mark.parametrize("action", [["Warn", "Audit"], ["Deny"]], ids=" ".join)
def test_the_guard_means_the_very_pods_that_the_webhook_is_sent(
    kubectl_path: Path, action: list[str]
) -> None:
    """With a source's guard-stamp beside it there is one binding an entry, with its selectors."""
    overlay = "fail-open-guarded" + ("-deny" if action == ["Deny"] else "")
    chosen = ("spark", "mpi-operator", "mlrun")
    parts = [f"source-{name}{part}" for name in chosen for part in ("", "/guard-stamp")]
    objects = with_components(kubectl_path, overlay, *parts)
    bound = {
        each["metadata"]["name"]: each["spec"]
        for each in of_kind(objects, "ValidatingAdmissionPolicyBinding")
        if each["spec"]["policyName"] == names.STAMP_GUARD
    }
    sent = one(objects, CONFIGURATION)["webhooks"]
    assert len(bound) == len(sent) == 2 + 3 + 3 + 1
    for entry in sent:
        spec = bound[f"{names.STAMP_GUARD}-{entry['name'].partition('.')[0]}"]
        assert spec["matchResources"]["objectSelector"] == entry["objectSelector"]
        assert spec["matchResources"]["namespaceSelector"] == entry["namespaceSelector"]
        assert spec["validationActions"] == action
        assert spec["paramRef"]["name"] == names.WEBHOOK_CONFIGURATION
