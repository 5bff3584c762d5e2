"""The package for Python on a real cluster: submit, watch, wait, change, delete."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

import fairlead as fl
from tests.cluster.live_runs import LiveRun
from tests.cluster.spaces import Space
from tests.eventually import eventually
from tests.wording import mentions

pytest_plugins = ["tests.cluster.run_fixtures"]
IMAGE = "example.invalid/none"


@pytest.fixture
def client(run_space: Space) -> fl.Client:
    return fl.Client(run_space.plane.kubeconfig, namespace=run_space.name)


def ends(live: LiveRun, code: int) -> threading.Thread:
    """The program ends, some time after the Run is there."""

    def play() -> None:
        eventually("it is there", lambda: live.space.find("runs", live.name))
        live.until_phase("Running")
        live.ends("worker-0", code, message="epoch 1\nloss is NaN" if code else "")

    player = threading.Thread(target=play)
    player.start()
    return player


def as_a_program(cell: Callable[[], list[str]]) -> list[str]:
    return cell()


def as_a_notebook(cell: Callable[[], list[str]]) -> list[str]:
    """A notebook's cells run in its event loop."""

    async def run() -> list[str]:
        return cell()

    return asyncio.run(run())


@pytest.mark.parametrize("place", [as_a_program, as_a_notebook])
def test_a_run_is_submitted_watched_and_waited_for(
    run_space: Space, client: fl.Client, place: Callable[[Callable[[], list[str]]], list[str]]
) -> None:
    player = ends(LiveRun(run_space, "mnist"), 0)
    run = fl.Run("mnist", image=IMAGE, framework="pytorch", workers=1, command=["true"])
    handle = client.submit(run)
    threads = threading.active_count()
    assert place(lambda: [next(handle.watch()).phase])
    phases = place(lambda: [event.phase for event in handle.watch()])
    assert threading.active_count() <= threads
    player.join()
    assert phases[-1] == "Succeeded"
    assert handle.wait(timeout="1m").phase == "Succeeded"
    assert [each.name for each in client.list()] == ["mnist"]
    assert client.get("mnist") == handle
    handle.delete()
    LiveRun(run_space, "mnist").until_gone()
    with pytest.raises(fl.FairleadError, match="mnist"):
        handle.status()


def test_waiting_raises_what_became_of_it(run_space: Space, client: fl.Client) -> None:
    """A failure with its message, and a time that is over."""
    live = LiveRun(run_space, "sad")
    handle = client.submit(fl.Run("sad", image=IMAGE, framework="jax", workers=1))
    with pytest.raises(TimeoutError, match="sad"):
        handle.wait("Succeeded", timeout=0.1)
    live.until_phase("Running")
    handle.suspend()
    assert handle.wait("Suspended", timeout="1m").phase == "Suspended"
    handle.resume()
    assert asyncio.run(handle.wait_async("Running", timeout=60)).phase == "Running"
    live.space.patch("runs", "sad", {"metadata": {"labels": {"team": "x"}}})
    assert [each.name for each in client.list(selector="team=x")] == ["sad"]
    threading.Thread(target=handle.delete).start()
    with pytest.raises(fl.FairleadError, match="is deleted"):
        handle.wait(timeout="1m")


def test_a_run_that_has_failed_is_tried_again(run_space: Space, client: fl.Client) -> None:
    """The handle is that of the new Run."""
    live = LiveRun(run_space, "sad")
    handle = client.submit(fl.Run("sad", image=IMAGE, framework="jax", workers=1))
    with pytest.raises(fl.FairleadError, match="not over"):
        handle.retry()
    live.until_phase("Running")
    live.space.patch("runs", "sad", {"spec": {"backoffLimit": 0}})
    live.ends("worker-0", 1)
    live.until_phase("Failed")
    again = handle.retry()
    assert (again.name, again.namespace, again.client) == ("sad-2", run_space.name, client)
    assert again.wait("Running", timeout="1m").phase == "Running"
    with pytest.raises(fl.FairleadError, match="sad-2"):
        asyncio.run(handle.retry_async())


def test_a_function_goes_with_its_config_map(run_space: Space, client: fl.Client) -> None:
    handle = client.submit(fl.Run.from_function(_program, name="f", image="python:3.11"))
    found = run_space.get("configmaps", "f-code")
    assert found["metadata"]["ownerReferences"][0]["name"] == handle.name
    with pytest.raises(fl.FairleadError) as caught:
        client.submit(fl.Run("f", image=IMAGE))
    mentions(str(caught.value), "exists already")


def _program() -> None:
    print("hello")
