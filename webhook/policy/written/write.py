"""What is judged: the creation, change or deletion of one object; and the judgement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from webhook import names

if TYPE_CHECKING:
    from collections.abc import Mapping

# How people call an object, by its resource.
_CALLED: Final = {
    names.PLACEMENT_POLICIES: "policy",
    names.CAPACITY_CLASSES: "class",
    names.PLACEMENT_EXCEPTIONS: "exception",
}


class Write(NamedTuple):
    """A write. `place` is resource and name, as in `placementpolicies/spot`.

    old: the object's text as it is stored, None if it is created
    new: its text as it shall be, None if it is deleted
    """

    place: str
    old: bytes | None
    new: bytes | None

    @property
    def changes_nothing(self) -> bool:
        """Whether the set stays what it is: labels and finalizers of an object are not of it."""
        if self.old is None or self.new is None:
            return self.old is self.new
        return bool(said(self.old) == said(self.new))

    def before(self, objects: Mapping[str, bytes]) -> dict[str, bytes]:
        """All objects without the write, whatever is known of it already."""
        return _with(objects, self.place, self.old)

    def after(self, objects: Mapping[str, bytes]) -> dict[str, bytes]:
        """All objects with the write."""
        return _with(objects, self.place, self.new)


class Judgement(NamedTuple):
    """Why the write is refused, if it is, and what its author should know; a line for each."""

    refusals: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def said(text: bytes) -> Any:
    """What an object says: all but what it is called and how it fares."""
    content: dict[str, Any] = orjson.loads(text)
    return {key: value for key, value in content.items() if key not in ("metadata", "status")}


def called(place: str) -> str:
    """An object as people name it: `policy 'spot'`.

    >>> called("capacityclasses/spot")
    "class 'spot'"
    """
    resource, _, name = place.partition("/")
    return f"{_CALLED.get(resource, resource)} {name!r}"


def _with(objects: Mapping[str, bytes], place: str, text: bytes | None) -> dict[str, bytes]:
    result = {each: content for each, content in objects.items() if each != place}
    return result if text is None else {**result, place: text}
