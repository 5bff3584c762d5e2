"""A value follows its files, changes as a whole, and survives bad ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.server.config_map import mount
from tests.wording import mentions
from webhook.errors import FairleadError
from webhook.server.folder import Folder, Signature
from webhook.server.reload import Reloader, ReloadState

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _joined(files: dict[str, bytes]) -> bytes:
    """Stand in for compiling policies: it refuses what holds `bad`, and trips over `bug`."""
    joined = b" ".join(files.values())
    if b"bad" in joined:
        raise FairleadError(f"bad among {len(files)}")
    if b"bug" in joined:
        raise ZeroDivisionError("a bug")
    return joined


def of(
    source: Any, compile_files: Callable[[dict[str, bytes]], bytes] = _joined, **options: Any
) -> Reloader[bytes]:
    """The reloader of a folder, or of what stands in for one."""
    return Reloader("policies", source.read, compile_files, signature=source.signature, **options)


def of_folder(path: Path, **options: Any) -> Reloader[bytes]:
    return of(Folder(path), **options)


def test_the_first_poll_loads(tmp_path: Path) -> None:
    """What the folder holds is compiled and current, and the condition is ready."""
    (tmp_path / "a.yaml").write_bytes(b"one")
    reloader = of_folder(tmp_path, clock=lambda: NOW)
    assert reloader.state() == ReloadState("pending", NOW)
    assert reloader.condition().reason == "not loaded yet"
    state = reloader.poll()
    assert (state.outcome, state.loaded_at, state.error) == ("loaded", NOW, "")
    assert reloader.current == b"one"
    assert reloader.condition().ready


@pytest.mark.parametrize("bad", [b"bad", b"bug"])
def test_refused_files_leave_the_last_good_value(bad: bytes, tmp_path: Path) -> None:
    """The state and the readiness reason say what is wrong; an expected error or a bug alike."""
    path = tmp_path / "a.yaml"
    path.write_bytes(b"one")
    reloader = of_folder(tmp_path)
    good = reloader.poll()
    path.write_bytes(bad)
    state = reloader.poll()
    assert reloader.current == b"one"
    assert (state.outcome, state.digest) == ("refused", good.digest)
    assert bad.decode() in state.error
    assert reloader.condition().ready
    assert state.error in reloader.condition().reason


def test_files_that_are_good_again_are_taken(tmp_path: Path) -> None:
    """The error is gone from state and reason when the files are as they were before."""
    path = tmp_path / "a.yaml"
    path.write_bytes(b"one")
    reloader = of_folder(tmp_path)
    good = reloader.poll()
    path.write_bytes(b"bad")
    reloader.poll()
    path.write_bytes(b"one")
    state = reloader.poll()
    assert (state.outcome, state.error, state.digest) == ("loaded", "", good.digest)


def test_a_first_load_that_fails_is_not_ready(tmp_path: Path) -> None:
    """There is no value, the condition says why, and nothing is raised."""
    reloader = of_folder(tmp_path / "gone")
    assert reloader.poll().outcome == "refused"
    assert reloader.current is None
    assert not reloader.condition().ready
    mentions(reloader.condition().reason, f"{tmp_path}/gone", "no such")


def test_a_folder_that_comes_back_unchanged_is_taken(tmp_path: Path) -> None:
    """A volume that was away for a while ends the refusal, though no file in it has changed."""
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "a.yaml").write_bytes(b"one")
    later = datetime.now(UTC) + timedelta(hours=1)
    reloader = of_folder(folder, clock=lambda: later)
    reloader.poll()
    folder.rename(tmp_path / "away")
    assert reloader.poll().outcome == "refused"
    (tmp_path / "away").rename(folder)
    assert reloader.poll().outcome == "loaded"


def test_a_config_map_swap_is_noticed_again_and_again(tmp_path: Path) -> None:
    """Each swap of the hidden folder gives the new value, the second and third as the first."""
    mount(tmp_path, "v1", {"a.yaml": b"a1", "b.yaml": b"b1"})
    reloader = of_folder(tmp_path)
    reloader.poll()
    seen = [reloader.current]
    for version in ("2", "3", "4"):
        files = {name: f"{name[0]}{version}".encode() for name in ("a.yaml", "b.yaml")}
        mount(tmp_path, f"v{version}", files)
        reloader.poll()
        seen.append(reloader.current)
    assert seen == [b"a1 b1", b"a2 b2", b"a3 b3", b"a4 b4"]


class _SwappedWhileRead:
    """A folder that is swapped between the reads of its two files, a given number of times."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.version = 1

    def read(self) -> dict[str, bytes]:
        first = self.version
        if self.times:
            self.times -= 1
            self.version += 1
        return {"a": b"%d" % first, "b": b"%d" % self.version}

    def signature(self) -> Signature:
        return Signature(((self.version,),), 0)


def test_files_swapped_while_they_are_read_are_read_again() -> None:
    """No value is ever made of some old and some new files."""
    reloader = of(_SwappedWhileRead(1))
    reloader.poll()
    assert reloader.current == b"2 2"


class _GoneWhileRead(_SwappedWhileRead):
    """A folder that is swapped before its files can be opened, once."""

    def read(self) -> dict[str, bytes]:
        if self.times:
            self.times -= 1
            self.version += 1
            raise FairleadError("no such file")
        return super().read()


def test_files_that_a_swap_removes_cause_no_rejection() -> None:
    """The folder has changed, so it is read again before anything is called wrong."""
    refused: list[ReloadState] = []
    source = _GoneWhileRead(1)
    reloader = of(source, on_refused=refused.append)
    assert reloader.poll().outcome == "loaded"
    assert reloader.current == b"2 2"
    assert refused == []


def test_a_value_may_tell_its_own_digest(tmp_path: Path) -> None:
    """State and reason show the digest that people meet elsewhere, such as the policy set's."""
    (tmp_path / "a.yaml").write_bytes(b"one")
    reloader = of_folder(tmp_path, digest_of=bytes.hex)
    assert reloader.poll().digest == b"one".hex()
    assert b"one".hex() in reloader.condition().reason


def test_files_that_never_stand_still_are_left_for_the_next_poll() -> None:
    """A poll ends, the last good value serves, and the next poll tries again."""
    source = _SwappedWhileRead(0)
    reloader = of(source)
    reloader.poll()
    source.times = 5
    source.version = 2
    assert reloader.poll().outcome == "loaded"
    assert reloader.current == b"1 1"
    reloader.poll()
    assert reloader.current == b"7 7"


def test_unchanged_files_are_neither_compiled_nor_read(tmp_path: Path) -> None:
    """Once their last change is past the clock's grain, looking at them is enough."""
    (tmp_path / "a.yaml").write_bytes(b"one")
    compiled: list[bytes] = []
    reads: list[str] = []

    class Counting(Folder):
        def read(self) -> dict[str, bytes]:
            reads.append("read")
            return super().read()

    def compile_files(files: dict[str, bytes]) -> bytes:
        compiled.append(_joined(files))
        return compiled[-1]

    fresh = datetime.fromtimestamp((tmp_path / "a.yaml").stat().st_ctime, UTC)
    now = fresh
    reloader = of(Counting(tmp_path), compile_files, clock=lambda: now)
    reloader.poll()
    reloader.poll()
    assert (len(reads), len(compiled)) == (2, 1)
    now = fresh + timedelta(seconds=3)
    reloader.poll()
    reloader.poll()
    reloader.poll()
    assert (len(reads), len(compiled)) == (3, 1)


def test_callbacks_are_called_once_for_each_change(tmp_path: Path) -> None:
    """A refusal that stands is told once, another one again, and each new value once."""
    path = tmp_path / "a.yaml"
    heard: list[object] = []
    reloader = of_folder(
        tmp_path,
        on_loaded=lambda value, _state: heard.append(value),
        on_refused=lambda state: heard.append(state.error),
    )
    for content in (b"one", b"bad", b"bad", b"bug", b"two", b"two"):
        path.write_bytes(content)
        reloader.poll()
    assert heard == [b"one", "bad among 1", "ZeroDivisionError: a bug", b"two"]


def test_a_refusal_says_since_when_it_stands(tmp_path: Path) -> None:
    """Another error does not reset the time from which on newer files were refused."""
    path = tmp_path / "a.yaml"
    times = iter(NOW + timedelta(minutes=minute) for minute in range(100))
    last = NOW

    def clock() -> datetime:
        nonlocal last
        last = next(times)
        return last

    reloader = of_folder(tmp_path, clock=clock)
    path.write_bytes(b"one")
    reloader.poll()
    path.write_bytes(b"bad")
    since = reloader.poll().since
    path.write_bytes(b"bug")
    state = reloader.poll()
    assert "bug" in state.error
    assert state.since == since < last


async def test_running_follows_the_folder(tmp_path: Path) -> None:
    """While it runs, an edit becomes the current value by itself, and cancelling ends it."""
    path = tmp_path / "a.yaml"
    path.write_bytes(b"one")

    news: asyncio.Queue[bytes] = asyncio.Queue()
    reloader = of_folder(
        tmp_path,
        on_loaded=lambda value, _state: news.put_nowait(value),
    )
    running = asyncio.create_task(reloader.run(0.01))
    seen = [await news.get()]
    path.write_bytes(b"two")
    seen.append(await news.get())
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert seen == [b"one", b"two"]
