"""Names that would lead elsewhere on a real API server: nothing is read, changed or deleted."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fairlead as fl
from fairlead.client import RunHandle
from tests.cluster.live_runs import CONTAINER, run_manifest
from tests.cluster.policy_plane import cluster_kubectl, control_plane, run_api  # noqa: F401
from tests.cluster.spaces import Space
from tests.odd_names import ODD_NAMES, ODD_NAMESPACES
from tests.wording import mentions
from webhook import names
from webhook.kube.client import connect

pytest_plugins = ["tests.cluster.run_fixtures"]


@pytest.fixture
def two_runs(bare_space: Space) -> Space:
    """A namespace with two Runs, which no controller changes."""
    for name in ("one", "two"):
        bare_space.create(run_manifest(name))
    return bare_space


@pytest.fixture
def client(two_runs: Space) -> fl.Client:
    return fl.Client(two_runs.plane.kubeconfig, namespace=two_runs.name)


def versions(space: Space) -> dict[str, str]:
    """Each Run with its version: equal if nothing was changed."""
    listed = space.items(names.RUNS)
    return {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in listed}


def is_method(name: str) -> bool:
    """Whether it is one of a handle's that waits for its answer; `_async` is what it calls."""
    found = inspect.getattr_static(RunHandle, name)
    return inspect.isfunction(found) and not name.startswith("_") and not name.endswith("_async")


def call(handle: RunHandle, method: str) -> None:
    answer = getattr(handle, method)()
    if isinstance(answer, Iterator):
        list(answer)


METHODS = sorted(filter(is_method, dir(RunHandle)))


def test_the_methods_are_all() -> None:
    assert {"delete", "logs", "status", "wait", "watch"} <= {*METHODS}


@pytest.mark.parametrize("name", ODD_NAMES)
def test_no_name_of_the_package_leads_to_another_run(
    two_runs: Space, client: fl.Client, name: str
) -> None:
    """Neither with `get`, nor with a handle that a program makes itself."""
    before = versions(two_runs)
    with pytest.raises(fl.FairleadError) as caught:
        client.get(name).delete()
    mentions(str(caught.value), "want 1 to 253", *(() if name else ("variable that is not set",)))
    for method in METHODS:
        with pytest.raises(fl.FairleadError, match="want 1 to 253"):
            call(RunHandle(client, two_runs.name, name), method)
    assert versions(two_runs) == before


@pytest.mark.parametrize("place", ODD_NAMESPACES)
def test_no_namespace_of_the_package_leads_to_another(
    two_runs: Space, client: fl.Client, place: str
) -> None:
    """An empty one is not all: only `Client` has a default, that of the context."""
    before = versions(two_runs)
    for method in METHODS:
        with pytest.raises(fl.FairleadError, match="want 1 to 63"):
            call(RunHandle(client, place, "one"), method)
    if place:
        run = fl.Run("three", image=str(CONTAINER["image"]), namespace=place)
        other = fl.Client(two_runs.plane.kubeconfig, namespace=place)
        calls: list[Callable[[], object]] = [
            lambda: client.get("one", namespace=place),
            lambda: client.list(namespace=place),
            lambda: client.submit(run),
            other.list,
            lambda: other.get("one").delete(),
        ]
        for ask in calls:
            with pytest.raises(fl.FairleadError, match="want 1 to 63"):
                ask()
    assert versions(two_runs) == before


@pytest.mark.parametrize(
    "words",
    [
        ("run", "status", ""),
        ("run", "status", "one?x=1"),
        ("run", "delete", ""),
        ("run", "delete", "one/../two"),
        ("run", "delete", "one", "two/../one"),
        ("run", "suspend", "../runs"),
        ("run", "resume", "%2e%2e"),
        ("run", "wait", ""),
        ("run", "wait", "one/status"),
        ("run", "logs", ""),
        ("run", "logs", "one#x"),
        ("run", "cost", "one/../two"),
        ("run", "top", ".."),
        ("run", "list", "-n", "x/y"),
        ("run", "list", "-n", ""),
        ("run", "status", "one", "-n", "default/../kube-system"),
        ("run", "delete", "--all", "-n", ""),
        ("run", "delete", "--all", "-n", ".."),
        ("explain", "pod", ""),
        ("explain", "pod", "one?x=1"),
        ("explain", "pod/one/../two"),
        ("explain", "run", "one", "-n", "a?b"),
        ("pods", "-n", "x/y"),
        ("doctor", "-n", "x/y"),
        ("policy", "list", "-n", "../x"),
        ("webhook", "certs", "-n", "x/y"),
        ("webhook", "certs", "--webhook-configuration", ".."),
    ],
    ids=" ".join,
)
def test_a_command_with_an_impossible_name_is_wrong_usage(
    two_runs: Space, words: tuple[str, ...]
) -> None:
    """It exits with 2 and says what a name may have; nothing is changed before."""
    before = versions(two_runs)
    done = two_runs.ask(*words)
    assert done.exit_code == 2, done.output
    assert ("is empty" if "" in words else "want") in done.output
    assert "Traceback" not in done.output
    assert versions(two_runs) == before


@pytest.mark.parametrize("selector", ["", " ", "\t "])
@pytest.mark.parametrize("verb", ["delete", "suspend", "resume", "wait"])
def test_an_empty_selector_chooses_no_runs(two_runs: Space, verb: str, selector: str) -> None:
    """The API server takes it for all."""
    before = versions(two_runs)
    assert len(two_runs.items(names.RUNS, selector)) == 2
    done = two_runs.ask("run", verb, "-l", selector)
    assert done.exit_code == 2, done.output
    mentions(done.output, "--selector")
    assert versions(two_runs) == before


def test_the_namespace_of_a_context_is_checked_too(two_runs: Space, tmp_path: Path) -> None:
    """The message names the file."""
    before = versions(two_runs)
    text = two_runs.plane.kubeconfig.read_text()
    wrong = tmp_path / "config"
    kubectl = two_runs.kubectl
    wrong.write_text(text)
    kubectl(
        f"--kubeconfig={wrong}", "config", "set-context", "--current", "--namespace=x/../default"
    )
    with pytest.raises(fl.FairleadError) as caught:
        fl.Client(wrong).get("one").delete()
    mentions(str(caught.value), str(wrong), "'x/../default'", "want 1 to 63")
    done = two_runs.ask("run", "delete", "--all", "-n", two_runs.name, kubeconfig=wrong)
    assert done.exit_code == 0, done.output
    assert set(before) - set(versions(two_runs)) == set(before)


def test_the_client_refuses_what_the_api_server_would_take(two_runs: Space) -> None:
    """A DELETE of the collection deletes all Runs; the client has no path for it."""
    before = versions(two_runs)

    async def delete(path: Any) -> None:
        async with connect(two_runs.plane.kubeconfig) as client:
            await client.delete(path)

    for path in (two_runs.path(names.RUNS), f"{two_runs.path(names.RUNS)}/"):
        with pytest.raises(TypeError):
            asyncio.run(delete(path))
    assert versions(two_runs) == before
    two_runs.plane.api.delete(two_runs.path(names.RUNS))
    assert versions(two_runs) == {}
