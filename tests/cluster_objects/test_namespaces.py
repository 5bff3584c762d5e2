"""The labels of namespaces, as the webhook asks for them."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.kube.fake_api import Answer, FakeApi, Request, answer_of, client_of, fake_api
from tests.wording import Wording, mentions
from webhook.api_paths import NAMESPACES
from webhook.cluster_objects.namespaces import Namespaces, read_namespace
from webhook.errors import ClusterError, NotSynced
from webhook.kube.watches import Watches


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {
        "kind": "Namespace",
        "metadata": {"name": name, "resourceVersion": "11", "labels": labels, "uid": "u"},
        "spec": {"finalizers": ["kubernetes"]},
    }


@asynccontextmanager
async def watched(
    folder: Path,
    live: Callable[[Request, Answer], Awaitable[None]],
    *,
    watch: bool = True,
    patience: float = 60.0,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[tuple[FakeApi, Namespaces]]:
    """Namespaces of a server that lists `research`, and answers single reads as `live` does."""

    async def handle(request: Request, answer: Answer) -> None:
        if request.path != NAMESPACES:
            await live(request, answer)
        elif request.is_watch:
            await answer.begin()
            await asyncio.sleep(1000)
        else:
            items = [namespace("research", tier="batch"), namespace("bare")]
            items[1]["metadata"].pop("labels")
            await answer.json({"metadata": {"resourceVersion": "9"}, "items": items})

    async with fake_api(handle) as api, client_of(api, folder) as client:
        watches = Watches(client)
        namespaces = Namespaces(watches, timeout=patience, clock=clock)
        async with watches if watch else nullcontext():
            if watch:
                await namespaces.cache.wait_synced()
            yield api, namespaces


async def nobody_asks(request: Request, _: Answer) -> None:
    raise AssertionError(request.path)


async def test_labels_that_are_known_cost_no_request(tmp_path: Path) -> None:
    """Both ways of asking answer from memory; a namespace without labels has none."""
    async with watched(tmp_path, nobody_asks) as (_, namespaces):
        assert namespaces.peek("research") == {"tier": "batch"}
        assert await namespaces.labels("research") == {"tier": "batch"}
        assert namespaces.peek("bare") == {}
        assert await namespaces.labels("bare") == {}


@pytest.mark.parametrize("watch", [True, False])
async def test_an_unknown_namespace_is_read(tmp_path: Path, watch: bool) -> None:
    """Also before the first list; the answer is remembered until the watch tells more."""

    async def live(request: Request, answer: Answer) -> None:
        await answer.json(namespace(request.path.rpartition("/")[2], tier="new"))

    async with watched(tmp_path, live, watch=watch) as (api, namespaces):
        assert namespaces.peek("fresh") is None
        assert await namespaces.labels("fresh") == {"tier": "new"}
        assert namespaces.cache.get("fresh") == {"tier": "new"}
        assert namespaces.peek("fresh") == ({"tier": "new"} if watch else None)
        assert api.requests[-1].path == "/api/v1/namespaces/fresh"


async def test_many_pods_in_a_new_namespace_make_one_request(tmp_path: Path) -> None:
    """Those who wait for one answer share it, and one that goes away takes it from nobody."""
    release = asyncio.Event()

    async def live(_: Request, answer: Answer) -> None:
        await release.wait()
        await answer.json(namespace("fresh", tier="new"))

    async with watched(tmp_path, live, watch=False) as (api, namespaces):
        asking = [asyncio.create_task(namespaces.labels("fresh")) for _ in range(50)]
        await asyncio.sleep(0)
        asking.pop(0).cancel()
        release.set()
        assert await asyncio.gather(*asking) == [{"tier": "new"}] * 49
        await namespaces.labels("fresh")
        assert len(api.requests) == 1


async def test_a_live_answer_serves_for_a_second(tmp_path: Path) -> None:
    """It is asked for whatever is known, and goes before what the watch told earlier."""

    async def live(_: Request, answer: Answer) -> None:
        await answer.json(namespace("research", tier="new"))

    async with watched(tmp_path, live) as (api, namespaces):
        assert namespaces.peek("research") == {"tier": "batch"}

        def reads() -> int:
            return sum(each.path.endswith("/research") for each in api.requests)

        begin = time.monotonic()
        for _ in range(3):
            assert await namespaces.live("research") == {"tier": "new"}
        # On a machine that stood still for a second, nothing is shown.
        assert reads() == 1 or time.monotonic() - begin > 1
        assert namespaces.peek("research") == {"tier": "new"}
        await asyncio.sleep(1.2)  # longer than an answer serves
        before = reads()
        await namespaces.live("research")
        assert reads() == before + 1


async def test_no_earlier_answer_serves_who_knows_that_the_labels_have_changed(
    tmp_path: Path,
) -> None:
    """All that ask so at one time share the next answer, half a second after the one before."""
    labels = {"tier": "old"}

    async def live(_: Request, answer: Answer) -> None:
        await answer.json(namespace("research", **labels))

    async with watched(tmp_path, live, watch=False) as (api, namespaces):
        assert await namespaces.live("research") == {"tier": "old"}
        labels["tier"] = "new"
        asked = [namespaces.live("research", fresh=True) for _ in range(20)]
        assert await asyncio.gather(*asked) == [{"tier": "new"}] * 20
        assert len(api.requests) == 2


async def test_made_up_names_make_no_flood(tmp_path: Path) -> None:
    """Reads have a pace, whoever asks; beyond it there is no answer, and none is guessed."""

    async def live(request: Request, answer: Answer) -> None:
        await answer.json(namespace(request.path.rpartition("/")[2]))

    async with watched(tmp_path, live, watch=False) as (api, namespaces):
        asked = [namespaces.live(f"made-up-{number}") for number in range(200)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        refused = [each for each in answers if isinstance(each, NotSynced)]
        assert len(refused) > 100
        assert "too many" in str(refused[0])
        assert len(api.requests) == len(answers) - len(refused)


async def test_a_watch_that_is_silent_too_long_is_not_believed(tmp_path: Path) -> None:
    """The labels are read live; there is no answer if that fails."""
    seconds = [0.0]

    async def live(request: Request, answer: Answer) -> None:
        if request.path.endswith("gone"):
            await answer.status(503, "ServiceUnavailable", "no")
        else:
            await answer.json(namespace("research", tier="new"))

    async with watched(tmp_path, live, clock=lambda: seconds[0]) as (_, namespaces):
        seconds[0] = 89.0
        assert await namespaces.labels("research") == {"tier": "batch"}
        seconds[0] = 91.0
        assert namespaces.peek("research") is None
        assert await namespaces.labels("research") == {"tier": "new"}
        with pytest.raises(NotSynced):
            await namespaces.labels("gone")


async def test_a_read_without_waiting_callers_may_fail(tmp_path: Path) -> None:
    """Then the failure is nobody's, and asyncio has nothing to complain of."""
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, said: complaints.append(said))

    async def live(_: Request, answer: Answer) -> None:
        await answer.status(500, "InternalError", "broken")

    async with watched(tmp_path, live, watch=False) as (_, namespaces):
        with suppress(TimeoutError):
            async with asyncio.timeout(0):
                await namespaces.labels("fresh")
        with pytest.raises(NotSynced):
            await namespaces.labels("fresh")
    assert complaints == []


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (404, "does not know it yet"),
        (403, "the API server refuses to read namespace fresh: no"),
        (500, "500"),
    ],
)
async def test_labels_that_cannot_be_read_are_not_guessed(
    tmp_path: Path, code: int, text: str
) -> None:
    """Every refusal is an error that names the namespace and the cause."""

    async def live(_: Request, answer: Answer) -> None:
        await answer.status(code, "Forbidden" if code == 403 else "", "no")

    async with watched(tmp_path, live, watch=False) as (api, namespaces):
        with pytest.raises(NotSynced, match=f"^namespace fresh: .*{text}"):
            await namespaces.labels("fresh")
        # A second try is for a connection that was dead, not for what the API server refuses.
        assert len(api.requests) == 1


async def test_a_server_that_does_not_answer_does_not_mean_a_namespace_without_labels(
    tmp_path: Path,
) -> None:
    """The wait is short, for a pod's creation waits for it."""

    async def live(_: Request, __: Answer) -> None:
        await asyncio.sleep(1000)

    async with watched(tmp_path, live, patience=0.5) as (_, namespaces):
        with pytest.raises(NotSynced, match="did not answer"):
            await namespaces.labels("fresh")


@pytest.mark.parametrize("name", ["", "..", ".", "a/b", "a?b", "A", "ü", "a\n", "x" * 64, "-a"])
async def test_a_name_that_no_namespace_can_have_is_never_sent(tmp_path: Path, name: str) -> None:
    """It would read another path, whose object has no labels."""
    async with watched(tmp_path, nobody_asks) as (_, namespaces):
        with pytest.raises(NotSynced, match="no namespace can"):
            await namespaces.labels(name)


async def test_an_answer_that_is_not_a_namespace_is_refused(tmp_path: Path) -> None:
    """A proxy's friendly JSON has no labels either."""

    async def live(_: Request, answer: Answer) -> None:
        await answer.json({"status": "ok"})

    async with watched(tmp_path, live) as (_, namespaces):
        with pytest.raises(NotSynced, match="something else"):
            await namespaces.labels("fresh")


async def test_a_caller_that_gets_no_labels_is_freed_at_once(tmp_path: Path) -> None:
    """A review has megabytes, and a collection of garbage may be long in coming."""
    callers: list[weakref.ref[set[str]]] = []

    async def live(_: Request, answer: Answer) -> None:
        await answer.json({"kind": "Status"}, status=404)

    async def ask(namespaces: Namespaces) -> None:
        review = {"large"}
        callers.append(weakref.ref(review))
        await namespaces.live("fresh")

    async with watched(tmp_path, live) as (_, namespaces):
        gc.disable()
        try:
            with suppress(NotSynced):
                await ask(namespaces)
            assert [caller() for caller in callers] == [None]
        finally:
            gc.enable()


def test_one_that_is_not_there_is_named_with_what_lists_them(
    tmp_path: Path, wording: Wording
) -> None:
    """It is a slip of the pen; the path of a request says little to whoever made it."""
    path = "/api/v1/namespaces/research"
    known = {path: namespace("research")}
    found = answer_of(known, tmp_path, lambda client: read_namespace(client, "research"))
    assert found == known[path]
    with pytest.raises(ClusterError) as caught:
        answer_of({}, tmp_path, lambda client: read_namespace(client, "nope"))
    mentions(str(caught.value), "no namespace nope", "kubectl get namespaces")
    wording(str(caught.value))
    with pytest.raises(ClusterError, match="you may not read"):
        answer_of({}, tmp_path, lambda client: read_namespace(client, "research"), [path])
