"""The API server's own words for each refusal are read right, and the check that it names works."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.accounts import account, grant
from tests.cluster.live_runs import run_manifest
from tests.cluster.policy_plane import cluster_kubectl, control_plane, run_api  # noqa: F401
from tests.cluster.spaces import Space
from tests.wording import mentions
from webhook import names
from webhook.api_paths import CollectionPath
from webhook.errors import ClusterError
from webhook.kube.client import Client, connect
from webhook.run_client.submit import run_path, runs_path

GET_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
pytest_plugins = ["tests.cluster.run_fixtures"]


def refusal(kubeconfig: Path, question: Callable[[Client], Awaitable[Any]]) -> str:
    async def ask() -> str:
        async with connect(kubeconfig) as client:
            try:
                await question(client)
            except ClusterError as error:
                return str(error)
        return ""

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("part", "rules"),
    [("", []), ("log", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])],
)
def test_a_missing_right_is_named_with_a_check_of_it(
    bare_space: Space, tmp_path: Path, part: str, rules: list[Any]
) -> None:
    """Which `kubectl auth can-i` answers with no, and with yes after the right is given."""
    kubectl, place = bare_space.kubectl, bare_space.name
    kubeconfig = account(kubectl, "poor", tmp_path / "config")
    if rules:
        grant(kubectl, "poor", "some", *rules)
    path = CollectionPath("v1", "pods", place).path_of("a")
    text = refusal(kubeconfig, lambda client: client.get(path.subresource(part) if part else path))
    mentions(text, f"system:serviceaccount:{place}:poor may not get", f"in namespace {place}")
    found = re.search(r"check it with: kubectl (.*)$", text)
    assert found
    check = shlex.split(found[1])
    assert kubectl.run(*check).stdout.strip() == "no"
    resource = f"pods/{part}" if part else "pods"
    grant(kubectl, "poor", "right", {**GET_PODS, "resources": [resource]})
    assert kubectl.run(*check).stdout.strip() == "yes"


def test_what_is_not_there_or_there_already_is_named(bare_space: Space) -> None:
    """As an object, a namespace, a definition, a name, and a version."""
    place, kubeconfig = bare_space.name, bare_space.plane.kubeconfig
    run = run_manifest("one")
    stored = bare_space.create(run)
    texts = [
        refusal(kubeconfig, lambda client: client.get(run_path(place, "two"))),
        refusal(kubeconfig, lambda client: client.create(runs_path("nowhere"), run)),
        refusal(
            kubeconfig,
            lambda client: client.get(CollectionPath(names.API_VERSION, "nothings", place)),
        ),
        refusal(kubeconfig, lambda client: client.create(runs_path(place), run)),
    ]
    bare_space.patch(names.RUNS, "one", {"metadata": {"labels": {"a": "b"}}})
    path = run_path(place, "one")
    texts.append(refusal(kubeconfig, lambda client: client.replace(path, stored)))
    assert texts[0] == f"there is no run two in namespace {place}"
    assert texts[1] == "there is no namespace nowhere: kubectl create namespace nowhere"
    mentions(texts[2], "this cluster has no nothings", "nothings.fairlead.dev is not installed")
    mentions(texts[3], f"run one in namespace {place} exists already", "kubectl delete run one -n")
    mentions(texts[4], f"another client has changed run one in namespace {place} meanwhile")
