"""What runs own, by the run's uid: the work for one run does not grow with the number of runs."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.kube.cache import Cache, Change

T = TypeVar("T")

_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


class ByRun(Generic[T]):
    """An index upon a cache whose keys are namespace/name. `uid_of` tells whose a value is."""

    def __init__(self, cache: Cache[T], uid_of: Callable[[T], str]) -> None:
        self._uid_of = uid_of
        self._owned: dict[str, dict[str, T]] = {}
        cache.subscribe(self._change)

    def of(self, uid: str) -> Mapping[str, T]:
        """The run's values by name: a read-only view, to be read at once and not kept."""
        owned = self._owned.get(uid)
        return MappingProxyType(owned) if owned else _NOTHING  # type: ignore[return-value]

    def count(self, uid: str) -> int:
        """How many there are."""
        return len(self._owned.get(uid, _NOTHING))

    def _change(self, change: Change[T]) -> None:
        name = change.key.partition("/")[2]
        if change.before is not None:
            uid = self._uid_of(change.before)
            owned = self._owned.get(uid, {})
            owned.pop(name, None)
            if not owned:
                self._owned.pop(uid, None)
        if change.after is not None:
            self._owned.setdefault(self._uid_of(change.after), {})[name] = change.after
