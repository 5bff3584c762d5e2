"""One supervisor of all watches of a process: nothing but itself ends one."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kube.fake_api import THINGS, Answer, FakeApi, Request, client_of, fake_api, until
from tests.kube.scripted import thing
from webhook.api_paths import CollectionPath
from webhook.backoff import Delays
from webhook.kube.cache import Cache
from webhook.kube.watches import Watches, WatchState

ROOT = Path(__file__).resolve().parents[2]
SHORT = Delays(0.001, 0.01)
OTHERS: Final = CollectionPath("v1", "others")
BROKEN: Final = CollectionPath("v1", "broken")


async def open_watch(to: Answer) -> None:
    await to.begin()
    await asyncio.Event().wait()


async def one_thing(request: Request, to: Answer) -> None:
    """Each collection has one object; watches are silent."""
    if request.is_watch:
        await open_watch(to)
    else:
        await to.json({"metadata": {"resourceVersion": "10"}, "items": [thing("a", 5, "x")]})


@asynccontextmanager
async def watching(
    folder: Path, handle: Callable[[Request, Answer], Awaitable[None]] = one_thing
) -> AsyncIterator[tuple[Watches, FakeApi]]:
    async with (
        fake_api(handle) as api,
        client_of(api, folder) as client,
        Watches(client) as watches,
    ):
        yield watches, api


def values() -> Cache[str]:
    return Cache(lambda raw: str(raw["value"]))


def running() -> set[asyncio.Task[Any]]:
    """Tasks other than the test's own."""
    return asyncio.all_tasks() - {asyncio.current_task()}


async def test_watches_that_are_added_before_the_block_start_with_it(tmp_path: Path) -> None:
    """A process is put together first."""
    async with fake_api(one_thing) as api, client_of(api, tmp_path) as client:
        watches, cache = Watches(client), values()
        watches.add(THINGS, cache)
        await asyncio.sleep(0)
        assert api.requests == []
        async with watches:
            await cache.wait_synced()


async def test_no_task_is_left_after_the_block(tmp_path: Path) -> None:
    """Neither of a watch that was removed nor of one that fails and waits."""

    async def handle(request: Request, to: Answer) -> None:
        if request.path == BROKEN:
            await to.status(500, "X", "as the test wants it")
        else:
            await one_thing(request, to)

    async with fake_api(handle) as api, client_of(api, tmp_path) as client:
        before = running()
        async with Watches(client) as watches:
            removed, cache = watches.add(THINGS, values()), values()
            watches.add(OTHERS, cache)
            broken = watches.add(BROKEN, values(), delays=SHORT)
            await cache.wait_synced()
            await until(lambda: broken.errors > 0)
            watches.remove(removed, removed)
        assert {task for task in running() - before if "keep_current" in repr(task)} == set()


async def test_an_error_of_the_block_is_the_blocks_own(tmp_path: Path) -> None:
    """Who starts a process catches it by its type."""

    async def fail() -> None:
        async with watching(tmp_path) as (watches, _):
            watches.add(THINGS, values())
            raise KeyError

    with pytest.raises(KeyError):
        await fail()


async def test_a_watch_outlives_any_exception(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It lists again, is counted as a bug, and the others know nothing of it."""
    touched = []

    class Odd(Cache[str]):
        def touch(self) -> None:
            touched.append(1)
            if len(touched) < 3:
                raise ZeroDivisionError
            super().touch()

    async with watching(tmp_path) as (watches, _):
        odd, other = Odd(lambda raw: str(raw["value"])), values()
        watch = watches.add(THINGS, odd, delays=SHORT)
        watches.add(OTHERS, other)
        await until(lambda: watch.restarts == 1)
        assert "ZeroDivisionError, which is a bug" in watch.trouble()
        assert watches.troubles() == (f"things: {watch.trouble()}",)
        await odd.wait_synced()
        await until(lambda: watches.troubles() == ())
        assert (watches.states()["things"].restarts, watches.states()["others"].restarts) == (2, 0)
        assert other.synced
    assert "this is a bug" in caplog.text


@pytest.mark.parametrize("name", [None, "", 7, ["a"]])
@pytest.mark.parametrize("how", ["list", "watch", "deletion"])
async def test_an_object_without_a_name_ends_no_watch(tmp_path: Path, name: Any, how: str) -> None:
    """It is left out and reported, and those after it are followed."""
    odd = {"metadata": {"name": name, "namespace": "lab", "resourceVersion": "11"}, "value": "x"}

    async def handle(request: Request, to: Answer) -> None:
        if not request.is_watch:
            items = [odd, thing("a", 5, "x")] if how == "list" else []
            await to.json({"metadata": {"resourceVersion": "10"}, "items": items})
            return
        await to.begin()
        if how != "list":
            await to.event("ADDED" if how == "watch" else "DELETED", odd)
        await to.event("ADDED", thing("b", 12, "y"))
        await asyncio.Event().wait()

    async with watching(tmp_path, handle) as (watches, _):
        cache = values()
        watch = watches.add(THINGS, cache)
        await until(lambda: cache.get("b") == "y")
        left_out = how != "deletion"
        assert ("lab/? is left out: it has no name" in watch.trouble()) == left_out
        assert watches.states()["things"].left_out == left_out
        assert (watch.lists, watch.errors, watch.restarts) == (1, 0, 0)


async def test_the_state_of_a_resource_is_the_worst_of_its_watches(tmp_path: Path) -> None:
    """And the sum of what they counted, which stays when one is removed."""

    async def handle(request: Request, to: Answer) -> None:
        if "/lab/" in request.path:
            await to.status(500, "X", "as the test wants it")
        else:
            await one_thing(request, to)

    async with watching(tmp_path, handle) as (watches, _):
        good, bad = values(), values()
        watches.add(THINGS, good)
        failing = watches.add(CollectionPath("v1", "things", "lab"), bad)
        await good.wait_synced()
        await until(lambda: failing.errors == 1)
        state = watches.states()["things"]
        assert (state.age, state.lists, state.errors) == (float("inf"), 1, 1)
        await until(lambda: watches.states()["things"].failing > 0)
        watches.remove(failing)
        state = watches.states()["things"]
        assert (state.failing, state.lists, state.errors) == (0, 1, 1)
        assert state.age < float("inf")


def test_a_resource_that_is_no_longer_watched_keeps_its_counts_alone() -> None:
    """A counter that falls looks like a restart of the process."""
    state = WatchState(1.0, 2.0, 3, 4, 5, 6, 7, 8)
    assert state.ended() == WatchState(0.0, 0.0, 0, 4, 5, 6, 7, 8)


async def test_watches_of_a_scope_end_with_it(tmp_path: Path) -> None:
    """Those of a leader, beside which the others go on."""
    async with watching(tmp_path) as (watches, _):
        watches.add(THINGS, values())
        with watches.scope() as own:
            cache = values()
            own.add(OTHERS, cache)
            assert own.client is watches.client
            await cache.wait_synced()
            assert len(watches) == 2
        assert len(watches) == 1
        assert watches.states()["others"].lists == 1


@pytest.mark.parametrize("scoped", [True, False])
async def test_a_restarted_watch_lists_what_reads_otherwise_now(
    tmp_path: Path, scoped: bool
) -> None:
    """A changed definition sends no event, and the object keeps its version."""
    value = "whole"

    async def handle(request: Request, to: Answer) -> None:
        if request.is_watch:
            await open_watch(to)
        else:
            found = [thing("a", 5, value)]
            await to.json({"metadata": {"resourceVersion": "10"}, "items": found})

    async with watching(tmp_path, handle) as (watches, _):
        with watches.scope() as own:
            cache = values()
            some = own if scoped else watches
            watch = some.add(THINGS, cache)
            await until(lambda: watch.watches == 1)
            value = "narrow"
            some.restart(watch)
            await until(lambda: cache.get("a") == "narrow")
            await until(lambda: watch.watches == 2)
            assert (watch.lists, watch.errors) == (2, 0)


@pytest.mark.parametrize("code", [403, 404])
@pytest.mark.parametrize("empty", [True, False])
async def test_a_collection_that_need_not_be_there_does_not_fail(
    tmp_path: Path, code: int, empty: bool
) -> None:
    """By what discovery says; one that is defined and may not be read does fail."""
    defined: list[str] = []

    async def handle(request: Request, to: Answer) -> None:
        if request.path == "/apis/g/v1":
            await to.json({"resources": [{"name": name} for name in defined]})
        else:
            await to.status(code, "X", "as the test wants it")

    async with watching(tmp_path, handle) as (watches, _):
        cache = values()
        watch = watches.add(
            CollectionPath("g/v1", "things"),
            cache,
            required=False,
            empty_if_undefined=empty,
            delays=SHORT,
        )
        await until(lambda: watch.undefined and watch.errors > 0)
        assert (watch.failing, watches.troubles()) == (0, ())
        assert cache.synced == empty
        defined.append("things")
        await until(lambda: watch.failing > 0)
        assert watches.troubles()


# Nothing but the supervisor.


def trees(*words: str) -> Mapping[str, ast.AST]:
    """The code of all shipped modules that have one of these words, by path."""
    texts = {
        str(module.relative_to(ROOT)): module.read_text()
        for folder in ("webhook", "fairlead", "certs")
        for module in (ROOT / folder).rglob("*.py")
    }
    return {
        path: ast.parse(text) for path, text in texts.items() if any(word in text for word in words)
    }


def used(tree: ast.AST) -> set[str]:
    """Every name and attribute of the code, also as a call or a base class."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def made(tree: ast.AST) -> set[str]:
    """The names that are called, or are base classes, without their type arguments."""
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    bases = [
        base for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for base in node.bases
    ]
    return {ast.unparse(each).partition("[")[0].rpartition(".")[2] for each in (*calls, *bases)}


def test_only_the_supervisor_makes_and_runs_a_reflector() -> None:
    """By hand nobody would start it again, or see that it has ended."""
    found = trees("Watch", "Reflector", "keep_current")
    supervisor = "webhook/kube/watches.py"
    assert {"Reflector", "keep_current"} <= used(found[supervisor])
    others = {path: tree for path, tree in found.items() if path != supervisor}
    assert [path for path in others if used(others[path]) & {"Reflector", "keep_current"}] == []
    assert [path for path in others if "Watch" in made(others[path])] == []


# Of each function that begins a task outside a TaskGroup: who sees what the task raises.
OWNERS = {
    "Election._serve": "it waits for both, and takes their results",
    "Controller.lead": "it waits for the workers, and takes the result of the first that ends",
    "Namespaces._begin": "all callers await the read; their last cancellation takes its exception",
    "_Facts._answer": "all callers await the read; a callback takes its exception",
    "SharedCalls.share": "all callers await the call; their last cancellation takes its exception",
    "Acceptor._begin": "what it runs logs every exception",
    "DryRuns.foresee": "all callers await the answer, and the first does so at once",
    "LogReader.read": "it takes each piece with the task that makes it",
    "LogReader.follow": "it takes each piece with the task that makes it",
    "LogReader._look": "it takes the results of tasks that have ended at each look",
    "Worker.ask": "it awaits the work",
    "Pools._judge": "each look waits for it, and the first after its end takes the result",
    "Pages.running": "it awaits it at the end",
    "_ended": "it raises nothing: an event is waited for",
    "_next": "it awaits the piece",
    "_follow": "it awaits the task before it returns, unless the Run is gone",
}


def test_every_task_has_an_owner_who_sees_its_exception() -> None:
    """A task that nobody awaits ends silently, and what it did is not done any more."""
    found = set()
    for tree in trees("create_task", "ensure_future").values():
        for scope, function in functions(tree):
            for node in ast.walk(function):
                text = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
                begins = text.endswith((".create_task", ".ensure_future"))
                if begins and not text.endswith("group.create_task"):
                    found.add(scope)
    assert found == set(OWNERS)


def functions(tree: ast.AST, within: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Functions and methods of a module, with their names: Class.method. Not those within them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from functions(node, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{within}{node.name}", node
