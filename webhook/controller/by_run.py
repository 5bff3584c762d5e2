"""What runs own, by run: the work for one of them does not grow with the number of runs."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.kube.cache import Cache, Change

T = TypeVar("T")

_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


class ByRun(Generic[T]):
    """An index upon a cache whose keys are namespace/name. `uid_of` tells whose a value is.

    An owner reference means an object of the same namespace: one that names a Run of another is
    none, though it has the uid right.
    """

    def __init__(self, cache: Cache[T], uid_of: Callable[[T], str]) -> None:
        self._uid_of = uid_of
        self._owned: dict[tuple[str, str], dict[str, T]] = {}
        cache.subscribe(self._change)

    def of(self, namespace: str, uid: str) -> Mapping[str, T]:
        """The run's values by name: a read-only view, to be read at once and not kept."""
        owned = self._owned.get((namespace, uid))
        return MappingProxyType(owned) if owned else _NOTHING  # type: ignore[return-value]

    def count(self, namespace: str, uid: str) -> int:
        """How many there are."""
        return len(self._owned.get((namespace, uid), _NOTHING))

    def _change(self, change: Change[T]) -> None:
        namespace, _, name = change.key.partition("/")
        if change.before is not None:
            run = namespace, self._uid_of(change.before)
            owned = self._owned.get(run, {})
            owned.pop(name, None)
            if not owned:
                self._owned.pop(run, None)
        if change.after is not None:
            run = namespace, self._uid_of(change.after)
            self._owned.setdefault(run, {})[name] = change.after
