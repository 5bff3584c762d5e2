"""One watched object by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from webhook.api_paths import check_name
from webhook.kube.cache import Cache

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.api_paths import CollectionPath
    from webhook.kube.watches import Watches

T = TypeVar("T")


class NamedObject(Generic[T]):
    """The object `name` of the collection at `path`, or its absence.

    `keep` converts it to the cached value. The object is listed and watched with
    `fieldSelector=metadata.name=<name>`, which a role with `resourceNames` permits (Kubernetes'
    documentation of RBAC, "Referring to resources").
    """

    def __init__(
        self,
        watches: Watches,
        path: CollectionPath,
        name: str,
        keep: Callable[[dict[str, Any]], T],
    ) -> None:
        query = {"fieldSelector": f"metadata.name={check_name(name)}"}
        self.cache = Cache(keep)
        self.watch = watches.add(path, self.cache, query=query)

    @property
    def value(self) -> T | None:
        """The cached value; None if the object does not exist or is not known yet."""
        return next(iter(self.cache.items().values()), None)

    def subscribe(self, listener: Callable[[T | None], None]) -> None:
        """Call `listener` with each new value; None: it was deleted."""
        self.cache.subscribe(lambda change: listener(change.after))
