"""Reload a value when its files change, and keep the last valid one."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Generic, Literal, NoReturn, TypeAlias, TypeVar

from webhook.errors import FairleadError
from webhook.server.readiness import Condition

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.server.folder import Signature

T = TypeVar("T")
Outcome: TypeAlias = Literal["pending", "loaded", "refused"]

_logger = logging.getLogger(__name__)
# Seconds. Time stamps of file systems have a resolution of milliseconds to two seconds.
_GRAIN_SECONDS: Final = 2.0
# How often files that change during a read are read again at once, before the next poll.
_READS: Final = 3


@dataclass(frozen=True, slots=True)
class ReloadState:
    """The result for the newest files, and the value in force.

    `since` is the first time of `outcome`. `digest` ("" if none) and `loaded_at` are those of the
    value in force; `error` is why the newest files were rejected, else "".
    """

    outcome: Outcome
    since: datetime
    digest: str = ""
    loaded_at: datetime | None = None
    error: str = ""


@dataclass(eq=False, repr=False, slots=True)
class Reloader(Generic[T]):
    """Reads files, compiles them as a whole, and swaps the result in by one assignment.

    If files cannot be read or compiled, the last valid value stays. `what` names the files in logs
    and reasons. `read` returns every file's content by name, and raises FairleadError if one cannot
    be read; `signature` returns metadata that shows a change, None if only the content does, and
    raises nothing. `digest_of` returns a value's own digest, if people do not identify it by the
    files' SHA-256. `on_loaded` is called with each new value, `on_refused` for each new rejection.
    Both run on the event loop, or in `poll` on the caller's thread. `compile_files` runs on a
    thread. `current` is the value in force; None before the first successful load.
    """

    what: str
    read: Callable[[], dict[str, bytes]]
    compile_files: Callable[[dict[str, bytes]], T]
    _: KW_ONLY
    signature: Callable[[], Signature | None] = lambda: None
    digest_of: Callable[[T], str] | None = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    on_loaded: Callable[[T, ReloadState], None] = lambda _value, _state: None
    on_refused: Callable[[ReloadState], None] = lambda _state: None
    current: T | None = field(default=None, init=False)
    _state: ReloadState = field(init=False)
    _signature: Signature | None = field(default=None, init=False)
    _tried: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self._state = ReloadState("pending", self.clock())

    def state(self) -> ReloadState:
        """Return the result for the newest files, and the value in force."""
        return self._state

    def refused(self) -> bool:
        """Return whether the newest files were rejected."""
        return self._state.outcome == "refused"

    def condition(self) -> Condition:
        """Return whether there is a value, and why newer files were rejected."""
        state = self._state
        refused = f"refused since {_stamp(state.since)}: {state.error}" if state.error else ""
        if state.loaded_at is None:
            return Condition(ready=False, reason=refused or "not loaded yet")
        loaded = f"{state.digest[:12]} loaded at {_stamp(state.loaded_at)}"
        return Condition(ready=True, reason=f"{loaded}; newer {refused}" if refused else loaded)

    def poll(self) -> ReloadState:
        """Check once, load changes, and return the state; raises nothing for invalid files."""
        self._adopt(self._attempt())
        return self._state

    async def run(self, interval: float) -> NoReturn:
        """Check every `interval` seconds until cancelled, off the event loop."""
        while True:
            await self.poll_in_thread()
            await asyncio.sleep(interval)

    async def poll_in_thread(self) -> ReloadState:
        """Do the same as `poll`, off the event loop."""
        self._adopt(await asyncio.to_thread(self._attempt))
        return self._state

    def _attempt(self) -> _Loaded[T] | _Refused | None:
        try:
            return self._load()
        except FairleadError as error:
            return _Refused(str(error), None)
        except Exception as error:
            # Otherwise one file that triggers a bug would stop every replica at the same time.
            return _Refused(f"{type(error).__name__}: {error}", error)

    def _load(self) -> _Loaded[T] | None:
        for _ in range(_READS):
            signature = self.signature()
            if signature is not None and signature == self._signature:
                return None
            # Reset until the read succeeds, so that every poll retries after a failure.
            tried, self._tried, self._signature = self._tried, "", None
            try:
                files = self.read()
            except FairleadError:
                # Replacing a folder removes the files that were about to be read.
                if self.signature() == signature:
                    raise
                continue
            # Otherwise the first files may be of the old set, and the last ones of the new set.
            if self.signature() == signature:
                break
        else:
            return None
        self._tried = digest = _digest(files)
        self._remember(signature)
        if digest == tried:
            return None
        value = self.compile_files(files)
        return _Loaded(value, self.digest_of(value) if self.digest_of else digest)

    def _remember(self, signature: Signature | None) -> None:
        # Do not trust a signature so recent that a further change might not alter it.
        if signature and self.clock().timestamp() - signature.newest > _GRAIN_SECONDS:
            self._signature = signature

    def _adopt(self, result: _Loaded[T] | _Refused | None) -> None:
        before = self._state
        if isinstance(result, _Loaded):
            now = self.clock()
            self.current = result.value
            self._state = ReloadState("loaded", now, result.digest, now)
            _logger.info("%s loaded", self.what, extra={"digest": result.digest})
            self.on_loaded(result.value, self._state)
        elif result is not None and result.error != before.error:
            since = before.since if self.refused() else self.clock()
            self._state = ReloadState(
                "refused", since, before.digest, before.loaded_at, result.error
            )
            _logger.error(
                "%s refused, %s",
                self.what,
                "the last good ones serve on" if before.loaded_at else "there are none to serve",
                extra={"error": result.error},
                exc_info=result.bug,
            )
            self.on_refused(self._state)


@dataclass(frozen=True, slots=True)
class _Loaded(Generic[T]):
    value: T
    digest: str


@dataclass(frozen=True, slots=True)
class _Refused:
    error: str
    bug: Exception | None


def _digest(files: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        # Lengths come first, so that content cannot move between fields unnoticed.
        digest.update(b"%d %d " % (len(name.encode("utf-8", "surrogateescape")), len(content)))
        digest.update(name.encode("utf-8", "surrogateescape"))
        digest.update(content)
    return digest.hexdigest()


def _stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")
