"""A cache of the values used last, with a maximum size."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Remembers `most` values, of `most_weight` together, but the last one whatever its weight.

    None cannot be a value.
    """

    def __init__(self, most: int, most_weight: int | None = None) -> None:
        self._most = most
        self._most_weight = most_weight
        self._values: OrderedDict[K, V] = OrderedDict()
        self._weights: dict[K, int] = {}
        self._weight = 0

    def get(self, key: K) -> V | None:
        """Return the value, which is used by that; None if there is none, or none any more."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V, weight: int = 0) -> None:
        """Remember the value, as the last one used."""
        self.forget(key)
        self._values[key] = value
        if self._most_weight is not None:
            self._weights[key] = weight
            self._weight += weight
        while len(self._values) > self._most or self._is_too_heavy():
            self.forget(next(iter(self._values)))

    def get_or_make(self, key: K, make: Callable[[], V], weight: int = 0) -> V:
        """Return the value, made now if there is none."""
        value = self.get(key)
        if value is None:
            value = make()
            self.put(key, value, weight)
        return value

    def forget(self, key: K) -> None:
        self._values.pop(key, None)
        self._weight -= self._weights.pop(key, 0)

    def clear(self) -> None:
        self._values.clear()
        self._weights.clear()
        self._weight = 0

    def _is_too_heavy(self) -> bool:
        return (
            self._most_weight is not None
            and self._weight > self._most_weight
            and len(self._values) > 1
        )
