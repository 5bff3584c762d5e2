"""Which kinds of workload are listed, by what an API server says that it serves."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from webhook.cli.diff.comparison_input import MAKERS
from webhook.cli.live import live_objects
from webhook.errors import ClusterError
from webhook.installation.object_kinds import Kind
from webhook.kube.client import Client

Json = dict[str, Any]


def group(name: str, *versions: str) -> Json:
    """A group of APIs; the first version is preferred."""
    served = [{"groupVersion": f"{name}/{version}"} for version in sorted(versions)]
    return {
        "name": name,
        "versions": served,
        "preferredVersion": {"groupVersion": f"{name}/{versions[0]}"},
    }


def resources(**kinds: str) -> Json:
    """What one version serves: kinds by resource."""
    return {
        "resources": [
            {"name": name.replace("_", "/"), "kind": kind, "verbs": ["get", "list"]}
            for name, kind in kinds.items()
        ]
    }


class Discovery:
    """Answers by path; what is not there is 404, as from the API server."""

    def __init__(self, **answers: Json) -> None:
        self.answers: dict[str, Json] = {"/api/v1": resources(pods="Pod"), **answers}

    async def get(self, path: str) -> Json:
        """The answer."""
        if path not in self.answers:
            raise ClusterError(f"GET {path}: not found", status=404)
        return self.answers[path]


def listed(client: Discovery) -> list[Kind]:
    """The kinds that are listed, by what this client reads."""
    return asyncio.run(live_objects.Discovery(cast("Client", client)).by_groups(MAKERS))


def found(answers: Json) -> list[Kind]:
    """The kinds that are listed."""
    return listed(Discovery(**answers))


def test_kinds_that_make_pods_are_listed_and_no_others() -> None:
    """No pods, no subresources, no groups of anybody else."""
    answers = {
        "/apis": {"groups": [group("apps", "v1"), group("example.com", "v1")]},
        "/apis/apps/v1": resources(
            deployments="Deployment", deployments_scale="Deployment", daemonsets="DaemonSet"
        ),
        "/apis/example.com/v1": resources(deployments="Deployment"),
    }
    assert found(answers) == [
        Kind("apps/v1", "Deployment", "deployments", True),
        Kind("apps/v1", "DaemonSet", "daemonsets", True),
    ]


def test_a_kind_is_listed_in_one_version_and_that_is_the_preferred_one() -> None:
    """A kind that only another version has is listed in that."""
    answers = {
        "/apis": {"groups": [group("kubeflow.org", "v1", "v2beta1")]},
        "/apis/kubeflow.org/v1": resources(tfjobs="TFJob"),
        "/apis/kubeflow.org/v2beta1": resources(mpijobs="MPIJob", tfjobs="TFJob"),
    }
    assert found(answers) == [
        Kind("kubeflow.org/v1", "TFJob", "tfjobs", True),
        Kind("kubeflow.org/v2beta1", "MPIJob", "mpijobs", True),
    ]


def test_a_version_that_is_gone_by_now_is_passed_over() -> None:
    """Definitions come and go; any other refusal is an error."""
    assert found({"/apis": {"groups": [group("apps", "v1")]}}) == []
    with pytest.raises(ClusterError):
        listed(Refusing())


class Refusing(Discovery):
    """Lets nobody look."""

    async def get(self, path: str) -> Json:
        """Refuse."""
        raise ClusterError(f"GET {path}: forbidden", status=403)
