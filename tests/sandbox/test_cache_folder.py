"""Where the cache is, and how two processes share it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.wording import mentions
from webhook.errors import SandboxError
from webhook.sandbox.cache_folder import cache_directory, locked


def test_the_cache_is_where_the_environment_says() -> None:
    """FAIRLEAD_CACHE goes before XDG_CACHE_HOME, and that before the home directory."""
    assert cache_directory({"FAIRLEAD_CACHE": "/a", "XDG_CACHE_HOME": "/b"}) == Path("/a")
    assert cache_directory({"XDG_CACHE_HOME": "/b"}) == Path("/b/fairlead")
    assert cache_directory({}) == Path.home() / ".cache" / "fairlead"


def test_an_empty_variable_counts_as_unset() -> None:
    """An empty path would be the current directory, which nobody means."""
    environ = {"FAIRLEAD_CACHE": "", "XDG_CACHE_HOME": ""}
    assert cache_directory(environ) == Path.home() / ".cache" / "fairlead"


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    """Who comes second waits until the first is done, and never sees its work half done."""
    lock = tmp_path / "lock"
    events: list[str] = []
    first_holds = threading.Event()

    def first() -> None:
        with locked(lock):
            first_holds.set()
            events.append("first starts")
            # Gives the second every chance to come in between, were it able to.
            threading.Event().wait(0.1)
            events.append("first ends")

    thread = threading.Thread(target=first)
    thread.start()
    first_holds.wait()
    with locked(lock):
        events.append("second")
    thread.join()
    assert events == ["first starts", "first ends", "second"]


def test_a_lock_that_cannot_be_written_is_an_error_with_the_cure(tmp_path: Path) -> None:
    """As in a home that is read-only: `fairlead sandbox up` says so, without a traceback."""
    (tmp_path / "file").write_text("")
    with pytest.raises(SandboxError) as raised, locked(tmp_path / "file" / "lock"):
        pass
    mentions(str(raised.value), tmp_path / "file", "FAIRLEAD_CACHE")


def test_a_lock_that_is_held_for_too_long_is_an_error_with_the_cure(tmp_path: Path) -> None:
    """Nobody waits forever for a process that hangs."""
    lock = tmp_path / "lock"
    with locked(lock), pytest.raises(SandboxError) as raised, locked(lock, patience=0.1):
        pass
    mentions(str(raised.value), "another process holds", lock, "fuser")
