"""Policies that are edited while pods are created."""

from __future__ import annotations

import json
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.manifests import Json, pod
from tests.cluster.spaces import NewNamespace, Running, stamp
from tests.eventually import eventually
from tests.server.config_map import mount
from webhook import names
from webhook.policy.load import load

pytest_plugins = ["tests.cluster.webhook_fixtures"]

VERSIONS = 5


def files(version: int) -> dict[str, bytes]:
    """Two policies in two files, which must never be mixed with those of another version."""
    selector = {"nodeSelector": {"version": f"v{version}"}}
    toleration = {"tolerations": [{"key": f"v{version}", "operator": "Exists"}]}
    return {
        "a.yaml": policy("one", {"defaults": selector}),
        "b.yaml": policy("two", {"overrides": toleration}),
    }


def policy(name: str, spec: Json) -> bytes:
    """A policy's document; JSON is YAML."""
    metadata = {"name": name}
    kind = "PlacementPolicy"
    document = {"apiVersion": names.API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
    return json.dumps(document).encode()


HASHES = [load(files(version)).policies.hash for version in range(VERSIONS)]


@pytest.fixture(scope="module")
def policy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first version, mounted as the kubelet mounts a ConfigMap."""
    folder = tmp_path_factory.mktemp("config-map")
    mount(folder, "v0", files(0))
    return folder


def test_each_pod_gets_one_set_or_the_other_and_never_a_mix(
    running: Running, new_namespace: NewNamespace
) -> None:
    """While a ConfigMap is swapped several times, each pod's fields and stamp are of one set."""
    space = new_namespace({})
    created: list[Json] = []
    failures: list[BaseException] = []
    enough = threading.Event()

    def create(number: int) -> None:
        path = f"/api/v1/namespaces/{space.name}/pods"
        count = 0
        try:
            while not enough.is_set():
                # Nobody schedules them: what is looked at is how they were made.
                sent = pod(f"p-{number}-{count}", schedulerName="nobody")
                created.append(space.plane.api.create(path, sent))
                count += 1
                # What is seen is the order of creations and edits; more of them show no more.
                time.sleep(0.02)
        except BaseException as error:
            failures.append(error)

    def more_than(count: int) -> None:
        eventually(f"{count} pods are created", lambda: len(created) >= count or failures)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        for version in range(1, VERSIONS):
            seen = len(created)
            more_than(seen + 20)
            mount(running.policies, f"v{version}", files(version))
            wanted = HASHES[version]
            eventually("the edit is in force", partial(in_force, running, wanted))
        more_than(len(created) + 20)
    finally:
        enough.set()
        for thread in threads:
            thread.join()
    assert failures == []

    versions = set()
    for one in created:
        version = int(one["spec"]["nodeSelector"]["version"].removeprefix("v"))
        keys = [entry["key"] for entry in one["spec"]["tolerations"]]
        assert [key for key in keys if key.startswith("v")] == [f"v{version}"]
        assert stamp(one) == {
            "policies": {"one": ["nodeSelector[version]"], "two": [f"tolerations[v{version}]"]},
            "set": HASHES[version][:16],
        }
        versions.add(version)
    assert versions == set(range(VERSIONS))
    stored = space.kubectl.json("get", "pods")["items"]
    assert {one["metadata"]["name"] for one in stored} == {
        one["metadata"]["name"] for one in created
    }
    assert all(names.PLACEMENT in one["metadata"]["annotations"] for one in stored)


def in_force(running: Running, digest: str) -> bool:
    """Whether the webhook serves the policies with this hash."""
    return running.metric("fairlead_policy_set_info", hash=digest) > 0
